package crash

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// step is one thing that happened, in the order in which it was finished.
type step struct {
	call string // write, truncate, sync, create, rename, unlink, ack
	path string
	to   string // rename
	data []byte // write
	at   int64  // write: offset; truncate: new size
	line string // ack
}

type recording struct{ steps []step }

// parse reads strace's log. A call that another thread interrupts takes effect when it is finished, which is right for a
// sync; for a write it does not matter, as one thread writes each file.
func parse(r io.Reader, dir string) (*recording, error) {
	p := &parser{dir: dir, offsets: map[string]int64{}, known: map[string]bool{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	begun := map[string]string{}
	for lines.Scan() {
		thread, line, _ := strings.Cut(lines.Text(), " ")
		line = strings.TrimLeft(line, " ")
		if head, ok := strings.CutSuffix(line, "<unfinished ...>"); ok {
			begun[thread] = strings.TrimRight(head, " ")
			continue
		}
		if _, tail, ok := strings.Cut(line, " resumed>"); ok && strings.HasPrefix(line, "<... ") {
			line = begun[thread] + tail
		}
		name, rest, _ := strings.Cut(line, "(")
		end := strings.LastIndex(rest, ") ")
		if end < 0 {
			continue // a note
		}
		result := strings.TrimLeft(rest[end+1:], " =")
		if strings.HasPrefix(result, "-") {
			continue // it failed
		}
		if err := p.call(name, strings.Split(rest[:end], ", "), result); err != nil {
			return nil, fmt.Errorf("%.200s: %w", line, err)
		}
	}
	return &p.log, lines.Err()
}

type parser struct {
	dir     string
	offsets map[string]int64 // of plain writes, which only files that are written front to back get
	known   map[string]bool  // files that exist
	log     recording
}

func (p *parser) call(name string, args []string, result string) error {
	switch name {
	case "open", "openat":
		path := text(result)
		if p.ours(path) && strings.Contains(strings.Join(args, " "), "O_CREAT") && !p.known[path] {
			p.known[path], p.offsets[path] = true, 0
			p.add(step{call: "create", path: path})
		}
	case "write":
		path, data := text(args[0]), text(args[1])
		if strings.HasPrefix(args[0], "1<") {
			p.add(step{call: "ack", line: data})
		} else if p.ours(path) {
			p.add(step{call: "write", path: path, data: []byte(data), at: p.offsets[path]})
			p.offsets[path] += int64(len(data))
		}
	case "pwrite64":
		at, err := strconv.ParseInt(args[3], 10, 64)
		if err != nil {
			return err
		}
		if path := text(args[0]); p.ours(path) {
			p.add(step{call: "write", path: path, data: []byte(text(args[1])), at: at})
		}
	case "ftruncate":
		size, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		if path := text(args[0]); p.ours(path) {
			p.add(step{call: "truncate", path: path, at: size})
		}
	case "fsync", "fdatasync":
		if path := text(args[0]); p.ours(path) || path == p.dir {
			p.add(step{call: "sync", path: path})
		}
	case "renameat":
		p.rename(text(args[1]), text(args[3]))
	case "rename":
		p.rename(text(args[0]), text(args[1]))
	case "unlink", "unlinkat":
		if path := text(args[len(args)-1]); name == "unlink" {
			p.unlink(path)
		} else {
			p.unlink(text(args[1]))
		}
	}
	return nil
}

func (p *parser) add(s step) { p.log.steps = append(p.log.steps, s) }

func (p *parser) rename(from, to string) {
	if p.ours(from) {
		delete(p.known, from)
		p.known[to] = true
		p.add(step{call: "rename", path: from, to: to})
	}
}

func (p *parser) unlink(path string) {
	if p.ours(path) {
		delete(p.known, path)
		p.add(step{call: "unlink", path: path})
	}
}

// ours reports whether a file must survive. The index of the log is rebuilt after a crash.
func (p *parser) ours(path string) bool {
	return strings.HasPrefix(path, p.dir+string(filepath.Separator)) && !strings.HasSuffix(path, "-shm")
}

// text decodes what strace printed in hex, between quotes or angle brackets.
func text(s string) string {
	_, s, _ = strings.Cut(s, `\x`)
	s = strings.TrimRight(s, `">.`)
	data, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		return "" // not a name or data, such as <pipe:[1]>
	}
	return string(data)
}
