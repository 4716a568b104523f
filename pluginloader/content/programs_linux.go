package content

import (
	"fmt"
	"os"
)

// runnable is the path by which a new process finds the file that is open here, in its own copy of our files: it is closed
// only once the program runs.
func runnable(f *os.File) string {
	if script(f) {
		return f.Name()
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd())
}
