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
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// maxProgram is the size in bytes up to which a program is unpacked.
const maxProgram = 512 << 20

// unpack writes the programs of an archive into dir. inside is the directory of the programs in the
// archive. It ignores all other files, so names in the archive cannot lead elsewhere.
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
	missing := slices.Clone(programs)
	for files := tar.NewReader(plain); len(missing) > 0; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no program %s", missing[0])
		}
		if err != nil {
			return err
		}
		at, name := path.Split(header.Name)
		i := slices.Index(missing, name)
		if header.Typeflag != tar.TypeReg || at != inside+"/" || i < 0 {
			continue
		}
		if err := writeProgram(filepath.Join(dir, name), files); err != nil {
			return err
		}
		missing = slices.Delete(missing, i, i+1)
	}
	return nil
}

// writeProgram stores a program durably, so that after a power loss its name never leads to an
// incomplete file.
func writeProgram(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, io.LimitReader(content, maxProgram))
	return errors.Join(err, file.Chmod(0o755), file.Sync(), file.Close())
}

// checkPrograms runs both programs in dir and compares their versions with that of the release. A
// program for another processor, or for a newer system, thus never replaces one that works.
func checkPrograms(ctx context.Context, dir, version string) error {
	for _, name := range programs {
		out, err := exec.CommandContext(ctx, filepath.Join(dir, name), "version").CombinedOutput()
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

// syncDir makes renames in a directory durable. Windows has no such call.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
