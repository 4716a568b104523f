// Command sharegen writes the manual pages and the shell completions of a release: sharegen DIRECTORY VERSION DAY.
package main

import (
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	lash "lashd/cmd/lash/cli"
	lashd "lashd/cmd/lashd/cli"
	"lashd/internal/manpage"
)

// completions are the files in which shells look for the completions of lash.
var completions = map[string]string{
	"bash": "bash-completion/completions/lash",
	"zsh":  "zsh/site-functions/_lash",
	"fish": "fish/vendor_completions.d/lash.fish",
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: sharegen DIRECTORY VERSION DAY")
	}
	dir, version := os.Args[1], os.Args[2]
	day, err := time.Parse(time.DateOnly, os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	for _, app := range []*kong.Application{lash.Model(), lashd.Model()} {
		for _, page := range manpage.Pages(app, version, day) {
			write(filepath.Join(dir, "man/man1", page.Name+".1"), page.Text)
		}
	}
	for shell, file := range completions {
		write(filepath.Join(dir, file), lash.Completion(shell))
	}
}

func write(file, text string) {
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
