package pathresolve

import "io/fs"

// special pairs the mode bits that are no permissions in Go's and in the system's form.
var special = []struct {
	mode fs.FileMode
	bit  uint32
}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}}

// BitsOf returns permissions and special bits in the system's form.
func BitsOf(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, s := range special {
		if mode&s.mode != 0 {
			bits |= s.bit
		}
	}
	return bits
}

// ModeOf is the inverse of BitsOf. Higher bits, such as the file type, are ignored.
func ModeOf(bits uint32) fs.FileMode {
	mode := fs.FileMode(bits & 0o777)
	for _, s := range special {
		if bits&s.bit != 0 {
			mode |= s.mode
		}
	}
	return mode
}
