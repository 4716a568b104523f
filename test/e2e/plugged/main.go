// Command plugged is lashd with one more plugin and one more protocol, for tests: they do something at each seam when a
// conversation asks for it.
package main

import (
	"os"

	"lashd/cmd/lashd/cli"
	"lashd/engine/plugin"
)

func main() {
	os.Exit(cli.MainWith(os.Args[1:], cli.Extra{Drivers: []plugin.Factory{trail{}}, Plugins: []plugin.Factory{tour{}}}))
}
