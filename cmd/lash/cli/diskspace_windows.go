package cli

import "errors"

// freeSpace is not known here.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

// fileLimit is not known here.
func fileLimit() int64 { return 0 }
