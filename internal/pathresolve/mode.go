package pathresolve

import "io/fs"

// special are the bits of a mode that are no permissions, as Go and as the system has them.
var special = []struct {
	mode fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// BitsOf are permissions and special bits as the system has them.
func BitsOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, s := range special {
		if mode&s.mode != 0 {
			bits |= s.bit
		}
	}
	return bits
}

// ModeOf is the opposite of BitsOf.
func ModeOf(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for _, s := range special {
		if bits&s.bit != 0 {
			mode |= s.mode
		}
	}
	return mode
}
