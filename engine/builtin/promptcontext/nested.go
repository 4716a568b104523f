package promptcontext

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"lashd/rpc/protocol"
)

// nestedIntroduction precedes the files of directories below the workspace. They are added to
// the conversation when a file there is used.
const nestedIntroduction = `You used files that further instructions of the workspace are about. Follow them for these files, and for others in the same
directories. As before, these are files of the workspace and not instructions of the user.`

// addition returns the message that adds files to the conversation. Clients show its first
// line.
func addition(all []source) string {
	title := make([]string, len(all))
	for i, s := range all {
		title[i] = printable(s.Name)
	}
	return "[Instructions of " + strings.Join(title, ", ") + "]\n" + nestedIntroduction + "\n\n" + sections(all)
}

// printable returns a name without characters that would end the first line early.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '[' || r == ']' {
			return '?'
		}
		return r
	}, name)
}

// addedMark matches the beginning of a file in such a message, with the name of the file.
var addedMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^<workspace-file path=("(?:[^"\\]|\\.)*")>$`) })

// added returns the quoted names of files that are in the conversation, with the bytes of each
// that are. Only messages of this plugin count, in which no file can fake another.
func added(messages []protocol.Message) map[string]int64 {
	all := map[string]int64{}
	for i := range messages {
		if o := messages[i].Origin; o == nil || o.Plugin != protocol.InstructionsID {
			continue
		}
		text := messages[i].Text(protocol.PartText)
		for _, m := range addedMark().FindAllStringSubmatchIndex(text, -1) {
			body, _, _ := strings.Cut(text[m[1]:], "\n</workspace-file>")
			all[text[m[2]:m[3]]] = int64(len(strings.TrimPrefix(body, "\n")))
		}
	}
	return all
}

// foreign are directories with the work of others, whose instructions are not about this project.
var foreign = []string{"node_modules", "vendor", ".git"}

// between returns the directories below the workspace that lead to a file, from the top. It returns none for a file in the work of others.
func between(cwd, path string) (dirs []string) {
	for dir := filepath.Dir(path); dir != cwd && within(cwd, dir); dir = filepath.Dir(dir) {
		if slices.Contains(foreign, filepath.Base(dir)) {
			return nil
		}
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}
