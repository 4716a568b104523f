package sandbox

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"lashd/internal/pathresolve"
)

// setting is a value in a configuration file of git. Name has the section and the key in lower case, without a subsection: "core.fsmonitor".
// So all remotes and branches have the same names. A later setting of the same name replaces an earlier one.
type setting struct{ name, value string }

// errUnclear means that a configuration file is too large, or has a line that this package does not understand.
var errUnclear = errors.New("the configuration of git has a part that cannot be read")

// mostConfig limits the size of a configuration file of git, in bytes.
const mostConfig = 64 << 10

// The lines of a configuration file. git also accepts a setting on the line of its section, after the bracket.
var (
	sectionLine = regexp.MustCompile(`^\[([A-Za-z0-9.-]+)(?:\s+"(?:[^"\\]|\\.)*")?\]\s*(.*)$`)
	settingLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$`)
)

// readConfig reads a configuration file of git. It understands what git writes, and fails on everything else, such as values over several lines.
func readConfig(path string) (all []setting, err error) {
	data, err := readSmall(path)
	if err != nil {
		return nil, err
	}
	section := ""
	for line := range bytes.Lines(data) {
		text := strings.TrimSpace(string(line))
		if m := sectionLine.FindStringSubmatch(text); m != nil {
			section, text = strings.ToLower(m[1]), m[2]
		}
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		m := settingLine.FindStringSubmatch(text)
		if m == nil || strings.HasSuffix(text, `\`) {
			return nil, errUnclear
		}
		all = append(all, setting{section + "." + strings.ToLower(m[1]), strings.Trim(m[2], `"`)})
	}
	return all, nil
}

// readSmall reads a file that a command may have made. It fails for a large file, and for one that is not regular, instead of waiting for a
// pipe.
func readSmall(path string) ([]byte, error) {
	f, err := pathresolve.OpenPath(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err == nil && len(data) > mostConfig {
		err = errUnclear
	}
	return data, err
}

// Many settings make git start programs, and new versions of git add some. So lashd lists the harmless ones, and reports all others.

// plainSettings are settings in the configuration of a repository that start no programs and read no other files. A name that ends with a
// point stands for the whole section.
var plainSettings = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks", "core.autocrlf",
	"core.eol", "core.safecrlf", "core.quotepath", "core.abbrev", "core.compression", "core.worktree", "core.sparsecheckout", "core.sparsecheckoutcone", "core.untrackedcache",
	"remote.url", "remote.fetch", "remote.pushurl", "remote.tagopt", "remote.prune", "remote.promisor", "remote.partialclonefilter", "branch.", "user.", "author.", "committer.",
	"submodule.url", "submodule.active", "submodule.branch", "submodule.ignore", "extensions.objectformat", "extensions.partialclone", "extensions.refstorage",
	"extensions.compatobjectformat", "init.defaultbranch", "pull.", "push.", "fetch.", "rebase.autostash", "rebase.autosquash", "rerere.", "gc.", "pack.threads", "index.", "feature.",
	"advice.", "color.", "column.", "commit.gpgsign", "tag.gpgsign", "commit.verbose", "status.", "log.date", "merge.conflictstyle", "merge.ff", "diff.renames", "diff.algorithm", "http.postbuffer",
	"protocol.version", "receive.denycurrentbranch", "receive.denynonfastforwards",
}

// runsPrograms returns the first setting of a configuration file by which git may run a program or read another file; empty if there is
// none, or no file.
func runsPrograms(path string) string {
	settings, err := readConfig(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "a part that cannot be read"
	}
	for _, s := range settings {
		plain := func(name string) bool {
			return name == s.name || strings.HasSuffix(name, ".") && strings.HasPrefix(s.name, name)
		}
		if !slices.ContainsFunc(plainSettings, plain) {
			return s.name
		}
	}
	return ""
}
