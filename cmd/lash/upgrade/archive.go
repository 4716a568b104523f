package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lashd/cmd/internal/installation"
)

// maxRelease is the size in bytes up to which the files of a release are unpacked.
const maxRelease = 1 << 30

// unpack writes the files of an archive into dir, which must not exist. inside is the directory in the archive. It fails for a name that
// leads elsewhere, and ignores links and devices, which a release does not have.
func unpack(archive, inside, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	files := tar.NewReader(io.LimitReader(plain, maxRelease))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && header.Typeflag == tar.TypeReg {
			err = unpackFile(header, inside, dir, files)
		}
		if err != nil {
			return err
		}
	}
}

// unpackFile writes one file of an archive. Only files in bin can be executed.
func unpackFile(header *tar.Header, inside, dir string, content io.Reader) error {
	name, ok := strings.CutPrefix(header.Name, inside+"/")
	if !ok || !filepath.IsLocal(name) {
		return fmt.Errorf("the name %q is not inside of %s", header.Name, inside)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(name, "bin/") {
		mode = 0o755
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}

// checkPrograms runs both programs of the release in dir and compares their versions with that of the release. A program for another
// processor, or for a newer system, thus never replaces one that works.
func checkPrograms(ctx context.Context, dir, version string) error {
	for _, name := range installation.Programs {
		out, err := exec.CommandContext(ctx, filepath.Join(dir, "bin", name), "version").CombinedOutput()
		said := strings.TrimSpace(string(out))
		if err != nil {
			return fmt.Errorf("the new %s does not run on this machine: %w: %s", name, err, said)
		}
		if want := name + " " + version; said != want {
			return fmt.Errorf("the new %s says that it is %q, not %q", name, said, want)
		}
	}
	return nil
}
