// Command lexergen copies the lexers of the languages that models write most from
// Chroma, whose version is that of go.mod.
package main

import (
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// names are the files of the languages. Some lexers use others of them for code
// inside of theirs.
const names = `awk bash bash_session batchfile c c# c++ clojure cmake css dart docker elixir erlang fish fsharp graphql groovy haskell hcl html ini java
	javascript json julia kotlin lua makefile mysql nginx_configuration_file nix objective-c ocaml perl php postgresql_sql_dialect powershell
	protocol_buffer python r ruby rust scala scss sql swift terraform toml typescript react viml vue xml yaml zig`

func main() {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		log.Fatalf("find the sources of Chroma: %v", err)
	}
	from := strings.TrimSpace(string(out))
	for name := range strings.FieldsSeq(names) {
		file := strings.NewReplacer("+", "p", "#", "sharp").Replace(name) + ".xml" // go:embed refuses other characters
		err = copyFile(filepath.Join(from, "lexers/embedded", name+".xml"), filepath.Join("lexers", file))
		if err != nil {
			log.Fatalf("copy the lexer of %s: %v", name, err)
		}
	}
	if err := copyFile(filepath.Join(from, "COPYING"), "lexers/COPYING"); err != nil {
		log.Fatalf("copy the license of Chroma: %v", err)
	}
	if err := writeGo(); err != nil {
		log.Fatalf("write the lexer of Go: %v", err)
	}
}

// copyFile copies a file.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// writeGo writes the lexer of Go, which is code in Chroma. A file cannot have its
// rule that looks for templates in texts.
func writeGo() error {
	lexer, ok := lexers.Go.(*chroma.RegexLexer)
	if !ok {
		return os.ErrNotExist
	}
	rules := lexer.MustRules()["root"]
	for i, rule := range rules {
		if strings.HasPrefix(rule.Pattern, "(`)") {
			rules[i] = chroma.Rule{Pattern: "`[^`]*`", Type: chroma.LiteralString}
		}
	}
	data, err := chroma.Marshal(lexer)
	if err != nil {
		return err
	}
	return os.WriteFile("lexers/go.xml", append(data, '\n'), 0o644)
}
