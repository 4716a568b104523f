package skills

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"lashd/engine/plugin"
	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// builtin has the commands that ship with lashd. They come last, so that a plugin can have its own command of the same name.
var builtin = Source{Plugin: "lashd", Bare: true, Texts: []*layout.Prompt{{
	Kind: layout.Command, Name: initName, Hint: "[FOCUS]", Description: "Write an AGENTS.md for this workspace, with what an agent must know to work here", Body: initText,
}}}

// initName is the command that writes instructions.
const initName = "init"

// initText is what the model reads for it.
const initText = `Write the file AGENTS.md in the root of this workspace: instructions for agents that work here later.

First look: the README and other documents, the build files, the configuration of tests, linters and CI, the directories, and a few source files that
are typical. Read instructions for other agents too, such as CLAUDE.md, .cursorrules, .cursor/rules and .github/copilot-instructions.md, and take over
what is still true.

Then write at most 100 lines:
- the commands to build, check and test, and the command for a single test. Run them if that is quick, and write only what works;
- the structure that one does not see from the names of files: which part is where, and which depends on which;
- conventions that differ from what is usual, with an example from the code;
- what must not be changed by hand, and what goes wrong easily.

Write what you have seen, not what is usual. Leave out lists of all files, general advice, and what a tool enforces anyway. Plain sentences, short headings.

If AGENTS.md exists, keep it as the base. Read it, tell the user what you would change and why, and change only that: keep what is right, correct what is
wrong, and add what is missing. lashd asks the user before it changes the file.

At the end, tell the user in a few lines what the file says, and what you were not sure about.

$ARGUMENTS`

// initWarning is the reason of the question before /init changes a file.
const initWarning = "AGENTS.md exists, and /init would change it"

// beforeCall asks a person before the turn of /init changes an AGENTS.md that exists.
func (i *instance) beforeCall(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	var call protocol.CommandCall
	if input := tc.Inputs[protocol.CommandsID]; len(input) == 0 || json.Unmarshal(input, &call) != nil {
		return nil, nil
	}
	if o, ok := i.factory.find(call.Name); !ok || o.plugin != builtin.Plugin || o.Name != initName {
		return nil, nil
	}
	for _, path := range changedBy(tc) {
		if filepath.Base(path) == agentsFile && i.has(path) {
			return []plugin.Directive{plugin.AskFirst(initWarning)}, nil
		}
	}
	return nil, nil
}

const agentsFile = "AGENTS.md"

// has reports whether a file of the workspace exists.
func (i *instance) has(path string) bool {
	if !filepath.IsAbs(path) {
		path = filepath.Join(i.context.Cwd, path)
	}
	_, err := os.Lstat(path)
	return err == nil
}

// changedBy returns the paths that a call changes, as far as they are those of file tools.
func changedBy(tc *plugin.ToolCallContext) (paths []string) {
	var a struct{ Path, Patch string }
	if json.Unmarshal(tc.Args, &a) != nil {
		return nil
	}
	switch tc.Tool {
	case "write", "edit":
		return []string{a.Path}
	case "patch":
		for _, m := range patchFile().FindAllStringSubmatch(a.Patch, -1) {
			paths = append(paths, m[1])
		}
	}
	return paths
}

// patchFile matches the lines of a patch that name a file.
var patchFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$`)
})
