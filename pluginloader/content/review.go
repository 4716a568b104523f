package content

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// Limits of the texts in a review, in bytes. The digest of a plugin covers larger files as well.
const (
	maxText  = 256 << 10 // of a file
	maxTexts = 1 << 20   // of all files together
)

// reviewer lists the files that a digest covers.
type reviewer struct {
	files []protocol.PluginReviewFile
	texts int // counted against maxTexts
}

// Files returns all files that the digest of a copy covers: those of the plugin, with relative paths, then the files and programs outside it,
// with absolute paths. It returns ErrChanging if one of the latter is not as approved any more.
func (c Copy) Files(ctx context.Context) ([]protocol.PluginReviewFile, error) {
	var r reviewer
	err := filepath.WalkDir(c.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(c.Root, path)
		if err != nil {
			return err
		}
		return r.add(ctx, path, filepath.ToSlash(name), d.Type())
	})
	for _, f := range outside(c.Beyond) {
		if err == nil && f.Digest != "" {
			err = r.addOutside(ctx, f)
		}
	}
	return r.files, err
}

// Before returns the files of the copy with a digest; nil if there is no such copy. Files outside the plugin have no text, because
// only their digests are stored.
func (s *Store) Before(ctx context.Context, d protocol.Digest) ([]protocol.PluginReviewFile, error) {
	c, err := s.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all := outside(c.Beyond)
	c.Beyond = manifest.Beyond{}
	files, err := c.Files(ctx)
	for _, f := range all {
		files = append(files, protocol.PluginReviewFile{Path: f.Path, Digest: f.Digest})
	}
	return files, err
}

// outside returns the files and programs that a plugin uses outside its directory, each once.
func outside(b manifest.Beyond) (all []manifest.NamedFile) {
	seen := map[string]bool{}
	add := func(f manifest.NamedFile) {
		if !seen[f.Path] {
			seen[f.Path] = true
			all = append(all, f)
		}
	}
	for _, f := range b.Files {
		add(f)
	}
	for _, e := range b.Executables {
		add(manifest.NamedFile{Path: e.Path, Digest: e.Digest})
	}
	return all
}

// add adds a file or link of the copy.
func (r *reviewer) add(ctx context.Context, path, name string, kind fs.FileMode) error {
	if kind == fs.ModeSymlink {
		dir, err := os.OpenRoot(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer dir.Close()
		to, err := dir.Readlink(filepath.Base(path))
		r.files = append(r.files, protocol.PluginReviewFile{Path: name, Link: to})
		return err
	}
	f, err := r.read(ctx, path, "")
	f.Path = name
	r.files = append(r.files, f)
	return err
}

// addOutside adds a file outside the plugin, which must be as the digest says.
func (r *reviewer) addOutside(ctx context.Context, approved manifest.NamedFile) error {
	f, err := r.read(ctx, approved.Path, approved.Digest)
	if err == nil && f.Digest != approved.Digest {
		err = fmt.Errorf("%s: %w", approved.Path, ErrChanging)
	}
	r.files = append(r.files, f)
	return err
}

// read describes a file, with its text if it is short enough to show. Other files are not read if their digest is known.
func (r *reviewer) read(ctx context.Context, path string, known protocol.Digest) (protocol.PluginReviewFile, error) {
	described := protocol.PluginReviewFile{Path: path, Digest: known}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return described, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return described, err
	}
	described.Size, described.Executable = info.Size(), info.Mode()&0o111 != 0
	if info.Size() > maxText || r.texts+int(info.Size()) > maxTexts {
		if known == "" {
			described.Digest, err = manifest.Sum(ctx, f)
		}
		return described, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	described.Digest = protocol.Digest(fmt.Sprintf("%x", sha256.Sum256(data)))
	if shownAsText(data) {
		described.Text = string(data)
		r.texts += len(data)
	}
	return described, err
}

// shownAsText reports whether a person can read a file.
func shownAsText(data []byte) bool {
	text := string(data)
	return len(data) <= maxText && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}
