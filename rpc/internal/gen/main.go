// Command gen writes what is made from the method table: the OpenRPC document and the protocol document.
package main

import (
	"fmt"
	"os"

	"lashd/rpc"
)

func main() {
	for path, text := range rpc.Generated() {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
