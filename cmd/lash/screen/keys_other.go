//go:build !unix

package screen

import "os"

// keys reads what the user types. Bubble Tea itself reads the keys of a Windows console.
type keys struct{ *os.File }

// newKeys returns the keys of a terminal.
func newKeys(in *os.File) *keys { return &keys{in} }

// start does nothing.
func (*keys) start() error { return nil }

// stop does nothing: Bubble Tea stops reading.
func (*keys) stop() {}
