// Command plugged is lashd with an additional plugin and an additional driver, for tests. Both act at
// each extension point when a conversation asks for it.
package main

import (
	"os"

	"lashd/cmd/lashd/cli"
	"lashd/engine/plugin"
)

func main() {
	os.Exit(cli.MainWith(os.Args[1:], cli.Extra{Drivers: []plugin.Factory{trail{}}, Plugins: []plugin.Factory{tour{}}}))
}
