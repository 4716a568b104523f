//go:build unix && !linux

package proc

func play(role string) { panic("unknown role " + role) }
