package filepoint

// privileged reports whether a file runs with the rights of its owner or group (setuid or
// setgid). Undo never restores such a file: the copy would belong to the user of lashd and
// grant that user's rights. Setgid has no such effect without the right to execute.
func privileged(bits uint32) bool { return bits&0o4000 != 0 || bits&0o2010 == 0o2010 }
