// Package installation lays out the files of a release on disk, so that one rename switches to another version.
//
//	PREFIX/lib/lash/0.2.0-137/            a release, with the files of its archive
//	PREFIX/lib/lash/current               link to the release in use
//	PREFIX/bin/lash, PREFIX/bin/lashd     links into current/bin
//	PREFIX/share/man/man1/lash.1, ...     links into current/share
//
// Renaming a link over current is the only step that changes what the programs are. A kill or a power loss before it leaves the old
// release, after it the new one. The release before the current one stays, because a daemon of it may still run.
package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lashd/internal/durable"
	"lashd/internal/pathresolve"
)

// Programs are the programs of a release, in bin.
var Programs = []string{"lash", "lashd"}

// Installation is the directory below which releases are installed. It is safe for concurrent use, also by several processes: the
// last one to switch wins.
type Installation struct {
	Prefix string // absolute, such as /home/ann/.local
}

// Of returns the installation in use to which a program belongs. ok is false if the program was installed in another way. program is an
// absolute path; links in it are resolved.
func Of(program string) (i Installation, ok bool) {
	real, err := pathresolve.Real(program)
	if err != nil {
		return Installation{}, false
	}
	lib := filepath.Dir(filepath.Dir(filepath.Dir(real))) // PREFIX/lib/lash/RELEASE/bin/NAME
	i = Installation{filepath.Dir(filepath.Dir(lib))}
	if lib != i.Lib() {
		return Installation{}, false
	}
	return i, isLink(i.current())
}

// Stable returns a path of a program that leads to the newest release after upgrades: the one in current if a release contains it, else
// program itself.
func Stable(program string) string {
	if i, ok := Of(program); ok {
		return filepath.Join(i.current(), "bin", filepath.Base(program))
	}
	return program
}

// Lib is the directory that contains the releases. New releases are unpacked in it, so that they need not be copied.
func (i Installation) Lib() string { return filepath.Join(i.Prefix, "lib", "lash") }

func (i Installation) current() string { return filepath.Join(i.Lib(), "current") }

// Switch installs the release that was unpacked into dir, a directory inside of Lib, and makes it the current one. If it fails, the
// programs are what they were before.
func (i Installation) Switch(dir, version string) error {
	files, err := published(dir)
	if err == nil {
		err = i.checkLinks()
	}
	if err == nil {
		err = syncAll(dir)
	}
	if err != nil {
		return err
	}
	release, err := i.move(dir, version)
	if err != nil {
		return err
	}
	before, err := pathresolve.Real(i.current())
	if err != nil {
		return err
	}
	old, _ := published(before) // none at the first installation
	if err := link(release, i.current()); err != nil {
		return err
	}
	if err = i.linkAll(files); err != nil {
		err = fmt.Errorf("version %s is in %s now, but not all links to it could be created: %w; install it again", version, i.current(), err)
	}
	i.removeLinks(old, files)
	i.removeReleases(filepath.Base(before), release)
	return err
}

// move gives the release in dir a name of its own in Lib, and returns the name.
func (i Installation) move(dir, version string) (release string, err error) {
	unique, err := os.MkdirTemp(i.Lib(), version+"-")
	if err != nil {
		return "", err
	}
	now := time.Now()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chtimes(dir, now, now)); err != nil { // removeReleases compares the time
		return "", err
	}
	if err := errors.Join(os.Remove(unique), os.Rename(dir, unique)); err != nil { // os.Rename replaces no directory
		return "", err
	}
	return filepath.Base(unique), durable.Sync(i.Lib())
}

// published returns the files of a release to which links lead, relative to it.
func published(release string) (files []string, err error) {
	for _, program := range Programs {
		info, err := os.Lstat(filepath.Join(release, "bin", program))
		if err != nil || !info.Mode().IsRegular() {
			return nil, fmt.Errorf("the release has no program %s", program)
		}
		files = append(files, filepath.Join("bin", program))
	}
	err = filepath.WalkDir(filepath.Join(release, "share"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			path, err = filepath.Rel(release, path)
			files = append(files, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a release without pages
	}
	return files, err
}

// checkLinks returns an error if the place of a program's link is taken by something else.
func (i Installation) checkLinks() error {
	for _, program := range Programs {
		path := filepath.Join(i.Prefix, "bin", program)
		if _, err := os.Lstat(path); err == nil && !i.owns(path) {
			return fmt.Errorf("%s was not installed by install.sh; move it away, or set PREFIX to another directory", path)
		}
	}
	return nil
}

// owns reports whether path is a link into a release.
func (i Installation) owns(path string) bool {
	real, err := pathresolve.Real(path)
	lib, libErr := pathresolve.Real(i.Lib())
	return isLink(path) && errors.Join(err, libErr) == nil && strings.HasPrefix(real, lib+string(filepath.Separator))
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// linkAll creates the links to files of the current release. Files of others in share stay.
func (i Installation) linkAll(files []string) error {
	for _, file := range files {
		path := filepath.Join(i.Prefix, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		target, err := filepath.Rel(filepath.Dir(path), filepath.Join(i.current(), file))
		if err == nil {
			err = os.Symlink(target, path)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// removeLinks removes the links to old files that the new release does not have. A link that cannot be removed leads nowhere.
func (i Installation) removeLinks(old, files []string) {
	stays := map[string]bool{}
	for _, file := range files {
		stays[file] = true
	}
	for _, file := range old {
		if path := filepath.Join(i.Prefix, file); !stays[file] && i.owns(path) {
			os.Remove(path)
		}
	}
}

// abandoned is the age at which no running installation can own a directory any more.
const abandoned = time.Hour

// removeReleases removes abandoned directories in Lib, except for the releases to keep. Directories that cannot be removed take space and
// do no harm.
func (i Installation) removeReleases(keep ...string) {
	kept := map[string]bool{}
	for _, name := range keep {
		kept[name] = true
	}
	entries, _ := os.ReadDir(i.Lib()) // what cannot be listed stays
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.Name() != "current" && !kept[e.Name()] && time.Since(info.ModTime()) > abandoned {
			os.RemoveAll(filepath.Join(i.Lib(), e.Name()))
		}
	}
}

// link makes path a link to target in one step.
func link(target, path string) error {
	temp, err := os.MkdirTemp(filepath.Dir(path), ".link-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	made := filepath.Join(temp, "link")
	if err := os.Symlink(target, made); err != nil {
		return err
	}
	if err := os.Rename(made, path); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// syncAll makes the files below dir durable, so that after a power loss current never leads to an incomplete release.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return durable.Sync(path)
	})
}
