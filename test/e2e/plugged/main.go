// Command plugged is lashd with one more plugin, for tests: it does something at each seam when a conversation asks for it.
package main

import (
	"os"

	"lashd/cmd/lashd/cli"
	"lashd/engine/plugin"
)

func main() { os.Exit(cli.MainWith(os.Args[1:], cli.Extra{Plugins: []plugin.Factory{tour{}}})) }
