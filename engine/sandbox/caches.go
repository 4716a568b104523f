package sandbox

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/proc"
)

// The caches of package managers are in the home directory, where a command in a sandbox only reads. A command with hosts downloads, so it gets
// private caches below /tmp/cache, which all commands of the workspace share. They begin with what the caches of the user have. Commands without
// hosts keep the caches of the user until the workspace has private ones.

// Limits of what is copied or linked into a new cache. Other files are downloaded again.
const (
	mostSeeded = 20_000  // files
	smallFile  = 4 << 10 // bytes up to which a file is copied: programs change small files, such as indexes, in place
)

// seeds are the caches that begin with links to the files of the user's caches. Dirs are parts of both that have downloads, name is below /tmp/cache.
var seeds = []struct {
	name string
	dirs []string
	from func(env environment) string
}{
	{"cargo", []string{"registry/cache", "registry/index"}, environment.cargo},
	{"npm", []string{"_cacache"}, func(e environment) string { return cmp.Or(e.value("npm_config_cache"), e.inHome(".npm")) }},
	{"pip", []string{"http", "http-v2", "wheels"}, func(e environment) string {
		return cmp.Or(e.value("PIP_CACHE_DIR"), filepath.Join(e.cacheHome(), "pip"))
	}},
	{"m2", []string{"."}, environment.maven},
}

// environment are the variables of a command outside of a sandbox, and the settings that `go env -w` stores.
type environment struct {
	variables []string
	home      string
}

// value returns a variable; empty if there is none.
func (e environment) value(name string) string {
	for _, entry := range slices.Backward(e.variables) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// inHome returns a path in the home directory; empty without one.
func (e environment) inHome(name string) string {
	if e.home == "" {
		return ""
	}
	return filepath.Join(e.home, name)
}

func (e environment) cargo() string { return cmp.Or(e.value("CARGO_HOME"), e.inHome(".cargo")) }

func (e environment) maven() string { return e.inHome(".m2/repository") }

func (e environment) cacheHome() string { return cmp.Or(e.value("XDG_CACHE_HOME"), e.inHome(".cache")) }

// goSetting returns a setting of Go: that of the environment, or that which `go env -w` stored; empty: none.
func (e environment) goSetting(name string) string {
	if value := e.value(name); value != "" {
		return value
	}
	data, err := os.ReadFile(cmp.Or(e.value("GOENV"), filepath.Join(cmp.Or(e.value("XDG_CONFIG_HOME"), e.inHome(".config")), "go", "env")))
	if err != nil {
		return "" // most users have none
	}
	return environment{variables: strings.Split(strings.TrimSpace(string(data)), "\n")}.value(name)
}

// goDownloads returns the directory with the user's downloaded modules.
func (e environment) goDownloads() string {
	path := filepath.SplitList(e.goSetting("GOPATH"))
	if len(path) == 0 {
		path = []string{e.inHome("go")}
	}
	return filepath.Join(cmp.Or(e.goSetting("GOMODCACHE"), filepath.Join(path[0], "pkg", "mod")), "cache", "download")
}

// goProxy returns the proxies of the user with the downloaded modules after the first one. They are not the first: they know no newer versions.
// The separator | lets Go go on to them after any error, as without a network.
func (e environment) goProxy() string {
	all := cmp.Or(e.goSetting("GOPROXY"), "https://proxy.golang.org,direct")
	downloads := "file://" + filepath.ToSlash(e.goDownloads())
	end := strings.IndexAny(all, ",|")
	switch {
	case all == "off":
		return downloads
	case end < 0:
		return all + "|" + downloads
	}
	return all[:end] + "|" + downloads + all[end:]
}

// caches returns the variables of the private caches, and fills new ones. env is that of the command.
func (b *Box) caches(variables []string) (env []string) {
	e := environment{variables: variables, home: cmp.Or(environment{variables: variables}.value("HOME"), b.home)}
	root, err := openCaches(b.Confinement.Sandbox.View.Temp)
	if err != nil {
		return nil // a command can do without caches
	}
	defer root.Close()
	if b.proxy != nil {
		e.seed(root)
	}
	has := func(name string) bool { _, err := root.Lstat(name); return err == nil }
	if b.proxy != nil || has("go-mod") {
		env = append(env, "GOMODCACHE="+cache+"/go-mod", "GOPROXY="+e.goProxy())
	}
	if has("cargo") {
		env = append(env, "CARGO_HOME="+cache+"/cargo")
	}
	if has("m2") || !exists(e.maven()) {
		env = append(env, "MAVEN_OPTS="+strings.TrimSpace(e.value("MAVEN_OPTS")+" "+b.mavenOptions()))
	}
	return env
}

// openCaches opens the directory for caches. Another command of the workspace can replace it with a link at any time, so it is opened in the
// directory around it, out of which no link leads.
func openCaches(temp string) (*os.Root, error) {
	around, err := os.OpenRoot(temp)
	if err != nil {
		return nil, err
	}
	defer around.Close()
	return around.OpenRoot(filepath.Base(cache))
}

// mavenOptions are the options with which Maven finds its cache and the proxy. Java reads no variables about proxies.
func (b *Box) mavenOptions() string {
	var options strings.Builder
	options.WriteString("-Dmaven.repo.local=" + cache + "/m2")
	if host, port, ok := strings.Cut(proc.ListenAddress, ":"); ok && b.proxy != nil {
		for _, scheme := range []string{"http", "https"} {
			options.WriteString(" -D" + scheme + ".proxyHost=" + host + " -D" + scheme + ".proxyPort=" + port)
		}
	}
	return options.String()
}

// seed makes the caches that are missing. It ignores errors: what is not in a cache is downloaded.
func (e environment) seed(root *os.Root) {
	left := mostSeeded
	for _, s := range seeds {
		if !isNew(root, s.name) {
			continue
		}
		from := s.from(e)
		_ = root.MkdirAll(s.name, 0o700)
		if s.name == "cargo" {
			link(root, from, s.name, "config.toml", "config")
		}
		for _, dir := range s.dirs {
			if from != "" {
				fill(root, filepath.Join(from, dir), filepath.Join(s.name, dir), &left)
			}
		}
	}
}

// isNew reports whether a cache has no files yet. npm and pip make theirs without hosts, too.
func isNew(root *os.Root, name string) bool {
	entries, err := fs.ReadDir(root.FS(), name)
	return err != nil || len(entries) == 0
}

// link links the named files of a directory that exist.
func link(root *os.Root, from, to string, names ...string) {
	for _, name := range names {
		if path := filepath.Join(from, name); exists(path) {
			_ = root.Symlink(path, filepath.Join(to, name))
		}
	}
}

// fill links the files of a directory into a new one, and copies small ones and indexes of npm, to which it appends. left is how many more files
// there may be. It leaves out links and repositories of git.
func fill(root *os.Root, from, to string, left *int) {
	_ = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		at, _ := strings.CutPrefix(path, from)
		at = filepath.Join(to, at)
		switch {
		case err != nil:
			return nil
		case *left == 0:
			return fs.SkipAll
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case d.IsDir():
			_ = root.MkdirAll(at, 0o700)
		case d.Type().IsRegular():
			*left--
			copyOrLink(root, path, at, d)
		}
		return nil
	})
}

// copyOrLink adds one file to a cache.
func copyOrLink(root *os.Root, path, at string, d fs.DirEntry) {
	info, err := d.Info()
	if err != nil {
		return
	}
	if info.Size() > smallFile && !strings.Contains(filepath.ToSlash(path), "/index-v5/") {
		_ = root.Symlink(path, at)
		return
	}
	if data, err := os.ReadFile(path); err == nil {
		_ = root.WriteFile(at, data, 0o600)
	}
}
