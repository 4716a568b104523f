package upgrade

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"lashd/cmd/internal/installation"
	"lashd/internal/pathresolve"
)

// managed lists parts of paths that show who installed a file, and the command with which its owner upgrades it.
var managed = []struct{ part, owner, command string }{
	{"/Cellar/", "Homebrew", "brew upgrade lash"},
	{"/nix/store/", "Nix", "nix profile upgrade lash"},
	{"/gnu/store/", "Guix", "guix upgrade lash"},
	{"/snap/", "snap", "snap refresh lash"},
}

// systemDirs belong to the package manager of the system.
var systemDirs = []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"}

// Installed returns the installation of the running program, whose path is program. If install.sh did not install the program, the error
// says how to upgrade it.
func Installed(program string) (installation.Installation, error) {
	if i, ok := installation.Of(program); ok {
		return i, nil
	}
	real, err := pathresolve.Real(program)
	if err != nil {
		return installation.Installation{}, fmt.Errorf("find the running program: %w", err)
	}
	for _, m := range managed {
		if strings.Contains(filepath.ToSlash(real), m.part) {
			return installation.Installation{}, fmt.Errorf("%s installed %s; upgrade it with: %s", m.owner, real, m.command)
		}
	}
	if slices.Contains(systemDirs, filepath.Dir(real)) {
		return installation.Installation{}, fmt.Errorf("%s belongs to the packages of the system; upgrade it with the package manager", real)
	}
	return installation.Installation{}, fmt.Errorf("lash upgrade replaces only what install.sh installed, which %s is not; if you built it, run "+
		"CGO_ENABLED=0 go install ./cmd/... in its new source", real)
}
