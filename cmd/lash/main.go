// Command lash is the program for people: it talks to the daemon lashd.
package main

import (
	"os"

	"lashd/cmd/lash/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
