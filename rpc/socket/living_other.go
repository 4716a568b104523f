//go:build !linux

package socket

import "net"

// Living calls look and returns true: this system cannot detect that a pid was reused.
func Living(_ *net.UnixConn, _ int, look func()) bool {
	look()
	return true
}
