package foreign

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Limits of a search: the files of Codex that are looked at, newest first, and the bytes that are read of each file.
const (
	mostFiles = 2000
	headBytes = 256 << 10
)

// Places are the directories in which agents keep their sessions. An empty one is not searched.
type Places struct{ Claude, Codex string }

// DefaultPlaces returns the places of a user, by the environment variables that the agents use and the home directory.
func DefaultPlaces(env func(string) string, home string) Places {
	p := Places{Claude: env("CLAUDE_CONFIG_DIR"), Codex: env("CODEX_HOME")}
	if p.Claude == "" {
		p.Claude = filepath.Join(home, ".claude")
	}
	if p.Codex == "" {
		p.Codex = filepath.Join(home, ".codex")
	}
	return p
}

// Found is a session file of a directory.
type Found struct {
	Agent      Agent
	Path       string
	Version    string // of the agent
	Title      string // or its first input
	ModifiedMs int64
	Size       int64
}

// Find returns the session files of a directory, newest first. Files that it cannot read or does not know are left out.
func (p Places) Find(cwd string) ([]Found, error) {
	paths, err := filepath.Glob(filepath.Join(escaped(p.Claude), "projects", projectName(cwd), "*.jsonl"))
	if err != nil {
		return nil, err
	}
	rollouts, err := newestRollouts(filepath.Join(p.Codex, "sessions"))
	if err != nil {
		return nil, err
	}
	found := []Found{}
	for _, path := range append(paths, rollouts...) {
		if f, ok := look(path, cwd); ok {
			found = append(found, f)
		}
	}
	slices.SortFunc(found, func(a, b Found) int { return int(b.ModifiedMs - a.ModifiedMs) })
	return found, nil
}

// escaped returns a path for a pattern of package filepath.
func escaped(path string) string {
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(path, `\$0`)
}

// notInName matches what Claude Code replaces in the name of a project's directory.
var notInName = regexp.MustCompile(`[^a-zA-Z0-9]`)

// projectName returns the name of the directory in which Claude Code keeps the sessions of a directory. Others can have the same name.
func projectName(cwd string) string { return notInName.ReplaceAllString(cwd, "-") }

// newestRollouts returns the newest files of Codex, whose names and directories begin with their time.
func newestRollouts(root string) (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
				return nil
			}
			return err
		}
		if ok, _ := filepath.Match("rollout-*.jsonl", d.Name()); ok && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return nil
	})
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths[:min(len(paths), mostFiles)], err
}

// look reads the beginning of a file, and reports whether it is a session of the directory with a message of a person.
func look(path, cwd string) (f Found, ok bool) {
	file, err := os.Open(path)
	if err != nil {
		return f, false
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f, false
	}
	head, err := io.ReadAll(io.LimitReader(file, headBytes))
	if err != nil {
		return f, false
	}
	if int64(len(head)) < info.Size() {
		head = head[:bytes.LastIndexByte(head, '\n')+1]
	}
	s, err := Convert(head)
	if err != nil || s.Cwd != cwd || s.FirstInput() == "" {
		return f, false
	}
	f = Found{Agent: s.Agent, Path: path, Version: s.Version, Title: s.Title, ModifiedMs: info.ModTime().UnixMilli(), Size: info.Size()}
	if f.Title == "" {
		f.Title = s.FirstInput()
	}
	return f, true
}
