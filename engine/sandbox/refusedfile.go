package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"lashd/internal/pathresolve"
)

// filePlace says what the sandbox lets a command do with a file.
type filePlace int

const (
	unknown     filePlace = iota // it is not known which file it is
	other                        // it reads the file
	hidden                       // it does not see the file
	fixed                        // it cannot change the file, though it is in the workspace
	inWorkspace                  // the file is in the workspace, which it reads
	open                         // it writes the file
	socket                       // the file is a socket of another program
)

// quoted finds what a message has in quotes.
var quoted = regexp.MustCompile("(?:^|[\\s(:,=])['\"`‘]([^'\"`‘’\n]+)['\"`’]")

// fileNames returns the files that an error message is about; one empty name if it names none. before and after are the parts of its line
// around the error, as in "cat: FILE: error", "open FILE: error" and "error: 'FILE'".
func fileNames(before, after string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(before+"\n"+after, -1) {
		all = append(all, m[1])
	}
	if len(all) > 0 {
		return all
	}
	return []string{bareName(before)}
}

// bareName returns the file that a message without quotes names before its error; empty: none.
func bareName(before string) string {
	before = strings.TrimRight(before, " \t:([")
	program := strings.LastIndex(before, ": ")
	last, created := strings.CutPrefix(strings.TrimSpace(before[program+1:]), "cannot create ") // as dash says it
	if !created && !isPath(last) {
		last = last[strings.LastIndexAny(last, " \t")+1:]
	}
	if program < 0 && !isPath(last) && !strings.Contains(last, "/") {
		return ""
	}
	return last
}

// isPath reports whether a text begins as a path does.
func isPath(text string) bool { return text != "" && strings.ContainsRune("/.~", rune(text[0])) }

// placeOf returns what the sandbox lets the command do with a file that an error message names. existing says that there must be such a file.
func (b *Box) placeOf(name string, existing bool) filePlace {
	s, path := b.Confinement.Sandbox, b.resolved(name, existing)
	switch {
	case path == "":
		return unknown
	case isIn(path, s.Keep):
		return fixed
	case isIn(path, s.Write):
		return open
	case isIn(path, s.View.Show):
		return inWorkspace
	case isIn(path, []string{"/tmp", "/dev/shm"}):
		return open
	case isIn(path, s.View.Hide):
		return hidden
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
		return socket
	}
	return other
}

// resolved returns the absolute path that a command means, without links; empty if it is not known. A command may have changed its directory, so a
// relative path counts only if there is such a file, or, without existing, at least its directory.
func (b *Box) resolved(name string, existing bool) string {
	rest, home := strings.CutPrefix(name, "~/")
	switch {
	case name == "":
		return ""
	case filepath.IsAbs(name):
	case home && b.home != "":
		name = filepath.Join(b.home, rest)
	case b.dir == "":
		return ""
	default:
		if name = filepath.Join(b.dir, name); !exists(name) && (existing || !exists(filepath.Dir(name))) {
			return ""
		}
	}
	if real, err := pathresolve.Existing(name); err == nil {
		return real
	}
	if dir, err := pathresolve.Existing(filepath.Dir(name)); err == nil {
		return filepath.Join(dir, filepath.Base(name))
	}
	return filepath.Clean(name)
}
