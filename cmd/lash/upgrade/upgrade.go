// Package upgrade replaces the programs lash and lashd by those of the newest release.
//
// Each step leaves a pair of programs that work together: everything is downloaded and checked beside
// the programs first, then lashd is renamed into place, then lash. If a kill comes in between, the old
// lash works with the new lashd, because a daemon serves older clients. The next upgrade completes the
// pair. A daemon that runs keeps its old program until it is restarted.
package upgrade

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// DefaultURL is where releases are published, if BaseURL names no other place.
const DefaultURL = "https://github.com/lash/lashd/releases/latest/download"

// Config says where releases come from and which programs they replace. All fields without a default
// are required. A Config is safe for concurrent use, but two installations at once do double work.
type Config struct {
	// BaseURL is the directory that contains checksums.txt and the archives.
	BaseURL string
	// Dir contains the programs lash and lashd.
	Dir string
	// Current is the version of the running program, such as 0.1.0.
	Current string
	// System is the operating system and processor of the archive; default that of this program.
	System string
	// Report is called before each step, with text for a person. Optional.
	Report func(step string)
}

// Release is a published version for one system.
type Release struct {
	Version string
	// file is the name of the archive, digest the SHA-256 of it in hexadecimal digits.
	file, digest string
}

// Newest returns the newest release for the system of c.
func (c Config) Newest(ctx context.Context) (Release, error) {
	text, err := c.fetchSums(ctx)
	if err != nil {
		return Release{}, err
	}
	return c.choose(text)
}

// Newer reports whether a release is newer than the running program. Versions are compared as
// semantic versions, so 0.10.0 is newer than 0.9.0.
func (c Config) Newer(r Release) bool { return semver.Compare("v"+r.Version, "v"+c.Current) > 0 }

// Install downloads a release, verifies it, and replaces both programs. If it fails, both programs
// are what they were before, or lashd is the new one and lash the old one. The error says which.
func (c Config) Install(ctx context.Context, r Release) error {
	removeAbandoned(c.Dir)
	temp, err := os.MkdirTemp(c.Dir, tempPrefix)
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w; run the upgrade as the user who installed lash, or install it again with PREFIX set to a directory of yours", c.Dir, err)
	}
	defer os.RemoveAll(temp)
	c.report("Downloading " + r.file)
	archive := filepath.Join(temp, "archive")
	if err := c.download(ctx, r, archive); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	c.report("Checking the programs")
	if err := unpack(archive, strings.TrimSuffix(r.file, ".tar.gz"), temp); err != nil {
		return fmt.Errorf("read %s: %w; nothing was changed", r.file, err)
	}
	if err := checkPrograms(ctx, temp, r.Version); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return c.replace(temp, r.Version)
}

// programs are the files that are replaced, in this order: an old lash works with a new lashd.
var programs = []string{"lashd", "lash"}

// replace renames the new programs from temp over the old ones. Both directories are on one file
// system, so each rename happens wholly or not at all, also after a power loss.
func (c Config) replace(temp, version string) error {
	for i, name := range programs {
		c.report("Replacing " + name)
		if err := os.Rename(filepath.Join(temp, name), filepath.Join(c.Dir, name)); err != nil {
			if i > 0 {
				return fmt.Errorf("lashd is now %s, but lash could not be replaced: %w; they work together; run lash upgrade again", version, err)
			}
			return fmt.Errorf("replace %s: %w; nothing was changed", name, err)
		}
	}
	return syncDir(c.Dir)
}

func (c Config) report(step string) {
	if c.Report != nil {
		c.Report(step)
	}
}

// system returns the system whose archive is wanted, as archives are named.
func (c Config) system() string {
	if c.System != "" {
		return c.System
	}
	return runtime.GOOS + "_" + runtime.GOARCH
}

const (
	// tempPrefix begins the names of temporary directories beside the programs.
	tempPrefix = ".lash-upgrade-"
	// abandoned is the age of a temporary directory that no running upgrade can own any more.
	abandoned = time.Hour
)

// removeAbandoned removes temporary directories of upgrades that were killed.
func removeAbandoned(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, tempPrefix+"*")) // the pattern is valid
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > abandoned {
			os.RemoveAll(path) // what stays takes space and does no harm
		}
	}
}

// client fetches releases. It does not follow a redirect to a URL that allowed rejects.
var client = &http.Client{
	CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 10 {
			return fmt.Errorf("stopped after 10 redirects")
		}
		return allowed(r.URL)
	},
}
