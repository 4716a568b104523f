package crash

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// sector is the size of an atomic disk write, in bytes.
const sector = 512

// disk is the content of a file system after a power loss: all synced data, and some of the rest. Names become durable in the
// order in which they were made, at the latest when their directory is synced; directories themselves at once.
type disk struct {
	files map[string]*file // as a running process sees them
	names map[string]*file // as they are durable
	moved map[string][]step
	inode map[string][]*file // of the steps in moved
}

type file struct {
	synced  []byte
	pending []step // writes and truncations since
}

func newDisk() *disk {
	return &disk{files: map[string]*file{}, names: map[string]*file{}, moved: map[string][]step{}, inode: map[string][]*file{}}
}

func (d *disk) do(s step) {
	dir := filepath.Dir(s.path)
	switch s.call {
	case "create":
		f := &file{}
		d.files[s.path] = f
		d.name(dir, s, f)
	case "rename":
		f := d.files[s.path]
		d.files[s.to] = f
		delete(d.files, s.path)
		d.name(dir, s, f)
	case "unlink":
		delete(d.files, s.path)
		d.name(dir, s, nil)
	case "write", "truncate":
		f := d.files[s.path]
		if f == nil {
			panic("write to a file that was never made: " + s.path)
		}
		f.pending = append(f.pending, s)
	case "sync":
		if f := d.files[s.path]; f != nil {
			for _, p := range f.pending {
				f.synced = p.apply(f.synced)
			}
			f.pending = nil
		}
		for i, p := range d.moved[s.path] { // it is a directory
			apply(d.names, p, d.inode[s.path][i])
		}
		delete(d.moved, s.path)
		delete(d.inode, s.path)
	}
}

func (d *disk) name(dir string, s step, f *file) {
	d.moved[dir] = append(d.moved[dir], s)
	d.inode[dir] = append(d.inode[dir], f)
}

func apply(names map[string]*file, s step, f *file) {
	switch s.call {
	case "create":
		names[s.path] = f
	case "rename":
		delete(names, s.path)
		names[s.to] = f
	case "unlink":
		delete(names, s.path)
	}
}

func (s step) apply(data []byte) []byte {
	if s.call == "truncate" {
		return grow(data, int(s.at))[:s.at]
	}
	data = grow(data, int(s.at)+len(s.data))
	copy(data[s.at:], s.data)
	return data
}

func grow(data []byte, size int) []byte {
	if size <= len(data) {
		return data
	}
	return append(data, make([]byte, size-len(data))...)
}

// crash lays out what one loss of power could leave. Of what was not synced, a share arrives, in no order, and what
// arrives may be torn.
func (d *disk) crash(from, into string, rng *rand.Rand) error {
	share := []float64{0, 0.2, 0.5, 0.8, 1}[rng.IntN(5)]
	names := maps.Clone(d.names)
	for dir, steps := range d.moved {
		for i := range rng.IntN(len(steps) + 1) {
			apply(names, steps[i], d.inode[dir][i])
		}
	}
	for path, f := range names {
		data := append([]byte(nil), f.synced...)
		for _, p := range f.pending {
			switch {
			case rng.Float64() >= share:
			case p.call == "write" && rng.IntN(4) == 0:
				data = tear(data, p, rng)
			default:
				data = p.apply(data)
			}
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(into, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// tear lets only some sectors of a write arrive.
func tear(data []byte, s step, rng *rand.Rand) []byte {
	for at := int64(0); at < int64(len(s.data)); {
		end := min(int64(len(s.data)), (s.at+at)/sector*sector+sector-s.at)
		if rng.IntN(2) == 0 {
			data = step{call: "write", at: s.at + at, data: s.data[at:end]}.apply(data)
		}
		at = end
	}
	return data
}
