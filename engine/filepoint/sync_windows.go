package filepoint

import "os"

// syncDir does nothing: Windows journals renames.
func syncDir(string) error { return nil }

func syncRoot(*os.Root) error { return nil }
