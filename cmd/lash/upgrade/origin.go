package upgrade

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/internal/pathresolve"
)

// Released is "true" in programs of release archives: scripts/release sets it with -ldflags -X.
var Released string

// errUnreleased explains what to do with a program that was built by its user.
var errUnreleased = errors.New("this lash does not come from a release archive, so it does not replace itself. If you installed it with Go, get the new source and run: CGO_ENABLED=0 go install ./cmd/lash ./cmd/lashd")

// managed lists parts of paths that show who installed a file, and the command with which its owner
// upgrades it.
var managed = []struct{ part, owner, command string }{
	{"/Cellar/", "Homebrew", "brew upgrade lash"},
	{"/nix/store/", "Nix", "nix profile upgrade lash"},
	{"/gnu/store/", "Guix", "guix upgrade lash"},
	{"/snap/", "snap", "snap refresh lash"},
}

// systemDirs belong to the package manager of the system.
var systemDirs = []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"}

// Dir returns the directory of the programs that an upgrade may replace. executable is the path of
// the running program; links in it are resolved. If a package manager or the user's Go installed the
// program, the error says what to do instead.
func Dir(executable string) (string, error) {
	real, err := pathresolve.Real(executable)
	if err != nil {
		return "", fmt.Errorf("find the running program: %w", err)
	}
	if err := checkOwner(real); err != nil {
		return "", err
	}
	return filepath.Dir(real), checkPair(filepath.Dir(real))
}

// checkOwner returns an error if a package manager or the user's Go installed the program at path.
func checkOwner(path string) error {
	for _, m := range managed {
		if strings.Contains(filepath.ToSlash(path), m.part) {
			return fmt.Errorf("%s installed %s; upgrade it with: %s", m.owner, path, m.command)
		}
	}
	switch {
	case slices.Contains(systemDirs, filepath.Dir(path)):
		return fmt.Errorf("%s belongs to the packages of the system; upgrade it with the package manager", path)
	case Released != "true":
		return errUnreleased
	}
	return nil
}

// checkPair returns an error if one of the programs has another name or place, for example because
// LASHD_DAEMON names a custom build.
func checkPair(dir string) error {
	for _, name := range programs {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return fmt.Errorf("there is no program %s in %s; install both programs again with install.sh", name, dir)
		}
	}
	return nil
}
