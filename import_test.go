package lashd_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// levels is the order of the packages: a package imports only packages of lower levels.
var levels = map[string]int{
	"lashd":                                 0,
	"lashd/rpc/protocol":                    0,
	"lashd/rpc/socket":                      0,
	"lashd/internal/strictjson":             0,
	"lashd/plugins":                         0,
	"lashd/plugins/sdk/go/lashdplugin":      0,
	"lashd/engine/tip":                      0,
	"lashd/internal/glob":                   0,
	"lashd/internal/pathresolve":            0,
	"lashd/internal/deadline":               0,
	"lashd/internal/durable":                0,
	"lashd/internal/duration":               0,
	"lashd/engine/hostrule":                 0,
	"lashd/engine/commandrule":              1,
	"lashd/engine/schedule":                 1,
	"lashd/pluginloader/watch":              1,
	"lashd/engine/feed":                     1,
	"lashd/engine/daemonevents":             1,
	"lashd/engine/netproxy":                 1,
	"lashd/engine/presence":                 1,
	"lashd/engine/proc":                     0,
	"lashd/engine/clientserver":             3,
	"lashd/engine/models":                   3,
	"lashd/engine/sandbox":                  2,
	"lashd/persistence":                     1,
	"lashd/persistence/crash":               2,
	"lashd/persistence/textindex":           2,
	"lashd/engine/graph":                    1,
	"lashd/engine/authority":                1,
	"lashd/engine/tool":                     1,
	"lashd/engine/attachment":               3,
	"lashd/engine/structured":               2,
	"lashd/engine/provider":                 1,
	"lashd/rpc/client":                      1,
	"lashd/rpc/internal/frame":              1,
	"lashd/engine/provider/encoding":        2,
	"lashd/engine/provider/endpoint":        2,
	"lashd/engine/provider/keystore":        2,
	"lashd/engine/provider/chatgpt":         2,
	"lashd/engine/provider/chatcompletions": 3,
	"lashd/engine/provider/responses":       3,
	"lashd/engine/provider/anthropic":       3,
	"lashd/engine/provider/gemini":          3,
	"lashd/engine/provider/scripted":        2,
	"lashd/engine/provider/providertest":    2,
	"lashd/engine/turn":                     2,
	"lashd/engine/starlark":                 1,
	"lashd/engine/starlark/worker":          2,
	"lashd/engine/task":                     1,
	"lashd/engine/background":               3,
	"lashd/engine/filepoint":                2,
	"lashd/engine/fact":                     3,
	"lashd/engine/capture":                  2,
	"lashd/engine/cellstream":               3,
	"lashd/engine/change":                   2,
	"lashd/engine/effectprint":              3,
	"lashd/engine/param":                    2,
	"lashd/engine/queue":                    3,
	"lashd/engine/receipt":                  3,
	"lashd/engine/trace":                    3,
	"lashd/engine/decision":                 3,
	"lashd/engine/alarm":                    4,
	"lashd/engine/task/live":                4,
	"lashd/engine/task/subagent":            3,
	"lashd/engine/monitor":                  5,
	"lashd/engine/approval":                 3,
	"lashd/engine/rulebook":                 4,
	"lashd/engine/search":                   3,
	"lashd/engine/export":                   3,
	"lashd/engine/upload":                   3,
	"lashd/engine/imports":                  5,
	"lashd/engine/undo":                     4,
	"lashd/engine/audit":                    4,
	"lashd/engine/plugin":                   3,
	"lashd/engine/artifact":                 4,
	"lashd/engine/pluginstate":              4,
	"lashd/engine/trigger":                  4,
	"lashd/engine/workgroup":                4,
	"lashd/engine/plugin/plugintest":        4,
	"lashd/engine/driver/rlm":               4,
	"lashd/engine/driver/standard":          4,
	"lashd/engine/builtin/workspace":        4,
	"lashd/engine/builtin/shell":            4,
	"lashd/engine/builtin/outputbudget":     4,
	"lashd/engine/builtin/promptcontext":    4,
	"lashd/engine/builtin/plan":             4,
	"lashd/engine/builtin/toolsearch":       4,
	"lashd/engine/builtin/history":          4,
	"lashd/engine/builtin/batch":            4,
	"lashd/engine/builtin/monitor":          4,
	"lashd/engine/builtin/subagents":        4,
	"lashd/engine/builtin/modelquery":       4,
	"lashd/engine/builtin/builtintest":      7,
	"lashd/pluginloader":                    6,
	"lashd/pluginloader/layout":             0,
	"lashd/pluginloader/manifest":           4,
	"lashd/pluginloader/skills":             5,
	"lashd/pluginloader/command":            5,
	"lashd/pluginloader/content":            5,
	"lashd/pluginloader/process":            4,
	"lashd/pluginloader/declared":           5,
	"lashd/pluginloader/child":              3,
	"lashd/pluginloader/mcp":                5,
	"lashd/engine":                          6,
	"lashd/rpc/acp":                         5,
	"lashd/rpc":                             7,
	"lashd/rpc/internal/gen":                11,
	"lashd/internal/termtext":               0,
	"lashd/internal/mcpinput":               1,
	"lashd/cmd/internal/providers":          7,
	"lashd/engine/provider/knownmodels":     2,
	"lashd/cmd/lash/markdown":               1,
	"lashd/cmd/lash/screen":                 0,
	"lashd/internal/lexergen":               0,
	"lashd/cmd/lash/prompt":                 1,
	"lashd/cmd/lash/picker":                 2,
	"lashd/cmd/lash/files":                  1,
	"lashd/cmd/lash/upgrade":                2,
	"lashd/cmd/lash/clipboard":              0,
	"lashd/cmd/lash/foreign":                4,
	"lashd/cmd/lash/turns":                  1,
	"lashd/cmd/lash/chat":                   7,
	"lashd/cmd/internal/console":            2,
	"lashd/cmd/internal/daemon":             3,
	"lashd/internal/manpage":                0,
	"lashd/cmd/internal/installation":       1,
	"lashd/cmd/lash/service":                2,
	"lashd/internal/sharegen":               11,
	"lashd/cmd/internal/config":             8,
	"lashd/cmd/internal/diagnosis":          3,
	"lashd/cmd/internal/providersetup":      9,
	"lashd/cmd/lashd/cli":                   10,
	"lashd/cmd/lashd":                       11,
	"lashd/cmd/lash/cli":                    10,
	"lashd/cmd/lash":                        11,
	"lashd/test/fakemodel":                  9,
	"lashd/test/bench":                      9,
	"lashd/test/e2e":                        9,
	"lashd/test/e2e/plugged":                11,
	"lashd/test/e2e/mcpserver":              9,
	"lashd/test/floor":                      9,
	"lashd/test/mutate":                     9,
	"lashd/test/projects":                   9,
	"lashd/test/eventlogs":                  9,
	"lashd/test/tree":                       0,
	"lashd/test/left":                       1,
	"lashd/test/wait":                       0,
	"lashd/test/skip":                       0,
	"lashd/test/emulator":                   1,
	"lashd/test/secretservice":              1,
	"lashd/test/systems":                    0,
	"lashd/test/fakemodel/cmd/fakemodel":    10,
}

// forbidden has imports that the levels would allow but the design does not: the
// engine gets plugin factories from its caller.
var forbidden = map[string]string{"lashd/engine": "lashd/engine/builtin"}

// confined has modules that only one package may import.
var confined = map[string]string{
	"github.com/coder/acp-go-sdk": "lashd/rpc/acp", "github.com/zalando/go-keyring": "lashd/engine/provider/keystore", "mvdan.cc/sh/v3/syntax": "lashd/engine/commandrule", "mvdan.cc/sh/v3/expand": "lashd/engine/commandrule",
	"go.starlark.net/starlark": "lashd/engine/starlark", "go.starlark.net/syntax": "lashd/engine/starlark",
}

func TestPackagesImportOnlyLowerLevels(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".cache") {
			return fs.SkipDir
		}
		if _, missing := os.Stat(filepath.Join(path, "go.mod")); missing == nil && path != "." {
			return fs.SkipDir // another module
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		checkFile(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkFile checks the imports of one file.
func checkFile(t *testing.T, path string) {
	pkg := strings.TrimSuffix("lashd/"+filepath.ToSlash(filepath.Dir(path)), "/.")
	level, known := levels[pkg]
	if !known {
		t.Errorf("%s: package %s has no level", path, pkg)
		return
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, imp := range file.Imports {
		to, _ := strconv.Unquote(imp.Path.Value)
		if only, ok := confined[to]; ok && pkg != only {
			t.Errorf("%s: %s imports %s, which only %s may import", path, pkg, to, only)
		}
		if to != "lashd" && !strings.HasPrefix(to, "lashd/") {
			continue
		}
		if target, known := levels[to]; !known || target >= level {
			t.Errorf("%s: %s (level %d) imports %s (level %d)", path, pkg, level, to, target)
		}
		if no, ok := forbidden[pkg]; ok && strings.HasPrefix(to, no) {
			t.Errorf("%s: %s imports %s", path, pkg, to)
		}
	}
}
