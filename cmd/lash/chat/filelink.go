package chat

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
)

// fileAddress returns the address of a file of the workspace cwd that a message names, or
// "" if there is none. An absolute path must be in the workspace, too.
func fileAddress(cwd, path string, line int) string {
	if cwd == "" {
		return ""
	}
	if filepath.IsAbs(path) {
		rel, err := filepath.Rel(cwd, path)
		if err != nil {
			return ""
		}
		path = rel
	}
	path = filepath.Clean(path)
	if !filepath.IsLocal(path) {
		return ""
	}
	path = filepath.Join(cwd, path)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	host, _ := os.Hostname() // without it the address means this machine, too
	address := url.URL{Scheme: "file", Host: host, Path: filepath.ToSlash(path)}
	if line > 0 {
		address.Fragment = strconv.Itoa(line)
	}
	return address.String()
}
