package filepoint

// privileged tells of a file that has the rights of its owner or group, whoever runs it. One that is brought back belongs to the
// user of lashd, and would have the rights of that one. Without the right to run it, setgid means nothing.
func privileged(bits uint32) bool { return bits&0o4000 != 0 || bits&0o2010 == 0o2010 }
