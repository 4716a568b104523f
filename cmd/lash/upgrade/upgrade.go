// Package upgrade replaces the programs lash and lashd by those of another release: it finds, downloads and verifies the release.
// Package installation switches to it in one step. A daemon that runs keeps its old program until it is restarted.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/semver"

	"lashd/cmd/internal/installation"
)

// Address is the default address of the releases. scripts/release sets it with -ldflags -X; other builds have none.
var Address string

// Source says where releases come from.
type Source struct {
	// Address has the newest release in latest/download and others in download/vVERSION. Both contain checksums.txt and archives.
	Address string
	// System is the operating system and processor of the archive; default that of this program.
	System string
	// Report is called before each step, with text for a person. Optional.
	Report func(step string)
	// Progress is called while the archive is downloaded, with the bytes so far. Optional.
	Progress func(bytes int64)
}

// Release is a published version for one system.
type Release struct {
	Version string
	// url is the directory of the archive, file its name, digest its SHA-256 in hexadecimal digits.
	url, file, digest string
}

// errNoAddress explains what to do with a build that has no release address.
var errNoAddress = errors.New("this build has no address of releases; name one with --from, or build the new version from source")

// Find returns the release with that version, or the newest one if version is "".
func (s Source) Find(ctx context.Context, version string) (Release, error) {
	if s.Address == "" {
		return Release{}, errNoAddress
	}
	url := strings.TrimSuffix(s.Address, "/") + "/latest/download"
	if version != "" {
		if !semver.IsValid("v" + version) {
			return Release{}, fmt.Errorf("%q is not a version; a version has the form 0.2.0", version)
		}
		url = strings.TrimSuffix(s.Address, "/") + "/download/v" + version
	}
	text, err := fetchSums(ctx, url)
	if err != nil {
		return Release{}, err
	}
	r, err := choose(text, url, s.system())
	if err == nil && version != "" && r.Version != version {
		err = fmt.Errorf("%s has version %s instead of %s", url, r.Version, version)
	}
	return r, err
}

// Compare compares a release with a version as semantic versions, so 0.10.0 is newer than 0.9.0. The result is positive if the release
// is newer.
func (r Release) Compare(version string) int { return semver.Compare("v"+r.Version, "v"+version) }

// Install downloads a release, verifies it, and switches to it. An error says whether anything was changed.
func (s Source) Install(ctx context.Context, r Release, to installation.Installation) error {
	temp, err := os.MkdirTemp(to.Lib(), "download-")
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("cannot write to %s: %w; run lash upgrade as the user who installed lash", to.Lib(), err)
	}
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := s.fetch(ctx, r, temp); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	s.report("Switching to " + r.Version)
	return to.Switch(filepath.Join(temp, "release"), r.Version)
}

// fetch stores a release in dir/release, and verifies it.
func (s Source) fetch(ctx context.Context, r Release, dir string) error {
	s.report("Downloading " + r.url + "/" + r.file)
	archive := filepath.Join(dir, "archive")
	if err := r.download(ctx, archive, &counter{report: s.Progress}); err != nil {
		return err
	}
	s.report("The checksum matches. Checking the programs")
	release := filepath.Join(dir, "release")
	if err := unpack(archive, strings.TrimSuffix(r.file, ".tar.gz"), release); err != nil {
		return fmt.Errorf("read %s: %w", r.file, err)
	}
	return checkPrograms(ctx, release, r.Version)
}

func (s Source) report(step string) {
	if s.Report != nil {
		s.Report(step)
	}
}

// system returns the system whose archive is wanted, as archives are named.
func (s Source) system() string {
	if s.System != "" {
		return s.System
	}
	return runtime.GOOS + "_" + runtime.GOARCH
}
