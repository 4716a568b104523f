// Command lashd runs LLM agents durably.
package main

import (
	"os"

	"lashd/cmd/lashd/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
