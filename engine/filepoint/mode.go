package filepoint

import "io/fs"

// special are the bits of a mode that are no permissions, as Go and as the system has them.
var special = []struct {
	mode fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// bitsOf are permissions and special bits as the system has them.
func bitsOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, s := range special {
		if mode&s.mode != 0 {
			bits |= s.bit
		}
	}
	return bits
}

// modeOf is the opposite of bitsOf.
func modeOf(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for _, s := range special {
		if bits&s.bit != 0 {
			mode |= s.mode
		}
	}
	return mode
}

// privileged tells of a file that has the rights of its owner or group, whoever runs it. One that is brought back belongs to the
// user of lashd, and would have the rights of that one. Without the right to run it, setgid means nothing.
func privileged(bits uint32) bool { return bits&0o4000 != 0 || bits&0o2010 == 0o2010 }
