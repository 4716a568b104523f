package mcp

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
)

// NewPool returns a Pool without connections. It fills in default times.
func NewPool(c PoolConfig) *Pool {
	c.Times = Times{
		Connect: cmp.Or(c.Times.Connect, 10*time.Second), Call: cmp.Or(c.Times.Call, 10*time.Minute),
		Stop: cmp.Or(c.Times.Stop, 2*time.Second), Terminate: cmp.Or(c.Times.Terminate, time.Second), Idle: cmp.Or(c.Times.Idle, 30*time.Minute),
	}
	p := &Pool{config: c, seal: make([]byte, sha256.Size), servers: map[hash]*server{}, accounts: map[string]*account{}, attempts: map[string]*Attempt{}}
	_, _ = rand.Read(p.seal) // it never fails
	return p
}

// hash identifies a configuration. It is keyed with a secret of this run of the daemon.
type hash [sha256.Size]byte

// endpoint is the complete configuration of a server, with variables replaced. The exported fields
// make up the key: endpoints with the same key share one connection. Everything that changes what
// the server does or sees must therefore be an exported field. The other fields serve messages and
// starts.
type endpoint struct {
	Argv      []string
	Path      string // of the program, if it is in the plugin; empty: looked up in PATH
	Dir       string
	Env       []string
	URL       string
	Headers   map[string]string
	Client    manifest.ServerClient // for logins; without an id: lashd registers one
	Call      time.Duration         // time limit of a call
	Digest    string                // of the plugin, if its files matter to the server; otherwise empty
	Held      *proc.Confinement     // limits and sandbox
	reading   *proc.Confinement     // those for sessions whose commands only read
	Private   bool                  // values of headers and variables are secret
	Temp      string                // TMPDIR of the program; empty: that of lashd
	Sampling  Sampling              // use of the model of the session; the zero value: none
	Box       *box                  // the sandbox of a session's commands; nil: none, or that of the plugin in Held
	label     string                // for messages: plugin/server
	approval  child.Approval        // checks programs before a start; with it, Digest is set
	key       hash
	sealed    []byte          // the key of seal
	sets      map[string]bool // names of the variables that the configuration sets
	root      string          // the plugin's directory, if the server runs in it
	data      string          // the plugin's data directory, if the server knows it
	workspace string          // in which the server runs; empty: it runs elsewhere
	secrets   []child.Secret
	hide      *strings.Replacer // replaces secrets
	settings  settings
}

// transport returns how lashd talks to the server.
func (e *endpoint) transport() manifest.Transport {
	if e.URL != "" {
		return manifest.TransportHTTP
	}
	return manifest.TransportStdio
}

// endpoint returns the endpoint of one server of a plugin, with all variables replaced. Variables
// of the environment come only from PassEnv. The error says what is wrong with the configuration.
func (p *Pool) endpoint(c *Config, name string) (*endpoint, error) {
	s := c.Servers[name]
	in := &filling{config: c, environ: p.config.Environ, pass: s.PassEnv}
	e := &endpoint{
		Private: c.Literal, Call: cmp.Or(time.Duration(s.TimeoutMs)*time.Millisecond, p.config.Times.Call), label: c.Plugin + "/" + name,
	}
	switch {
	case (s.Command == "") == (s.URL == ""):
		return nil, errors.New("set either command or url")
	case s.URL != "":
		e.URL, e.Headers = in.put(s.URL), in.all(s.Headers)
		if s.OAuth != nil {
			e.Client = manifest.ServerClient{ID: in.put(s.OAuth.ID), Secret: in.put(s.OAuth.Secret)}
			in.hide("clientSecret", e.Client.Secret)
		}
		in.secrets = append(append(in.secrets, child.Environment{Set: e.Headers}.Secrets()...), child.SecretsInArgs([]string{"url", e.URL})...)
		u, err := url.Parse(e.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("the url must begin with http:// or https://")
		}
		if c.Literal {
			in.hide("url", u.RawQuery, u.User.String())
		}
	default:
		if err := e.program(in, s); err != nil {
			return nil, err
		}
	}
	e.secrets = in.secrets
	e.hide = child.Replacer(e.secrets)
	e.settings = p.settingsOf(c, name, e)
	if !c.Workspace {
		e.Sampling = p.config.Sampling[name]
	}
	e.seal(p.seal)
	return e, nil
}

// program completes the endpoint of a server that lashd starts. A server that uses files of the
// plugin, or runs in a sandbox, runs in the plugin's directory. Any other server does not depend on
// the plugin. It runs in the user's home directory and is shared between plugins.
func (e *endpoint) program(in *filling, s manifest.Server) (err error) {
	e.Argv = []string{in.put(s.Command)}
	for _, a := range s.Args {
		e.Argv = append(e.Argv, in.put(a))
	}
	root, set, confine := in.config.Root, in.all(s.Env), in.config.Confine
	if strings.ContainsRune(e.Argv[0], filepath.Separator) && !filepath.IsAbs(e.Argv[0]) {
		e.Path = filepath.Join(root, e.Argv[0])
	}
	held, err := confine.In("")
	if err != nil {
		return err
	}
	reading, err := confine.ReadOnly().In("")
	if err != nil {
		return err
	}
	e.Held, e.reading = held.Confinement, reading.Confinement
	boxed := confine != nil && confine.Sandbox != nil
	env := child.Environment{Daemon: in.environ, Pass: s.PassEnv, Set: set, Temp: confine.Temp()}
	in.secrets = append(append(in.secrets, env.Secrets()...), child.SecretsInArgs(e.Argv[1:])...)
	if e.Dir = in.home(); e.Path != "" || in.own || boxed || slices.ContainsFunc(e.Argv[1:], in.names) {
		e.Dir, e.Digest, env.Root, env.Data = root, in.config.Digest, root, in.config.Data
		e.root, e.data = root, in.config.Data
	}
	if in.config.Dir != "" {
		e.Dir, e.workspace = in.config.Dir, in.config.Dir
	}
	e.sets = map[string]bool{}
	for name := range set {
		e.sets[name] = true
	}
	e.Env, e.Temp = env.List(), env.Temp
	if e.approval = in.config.Approval; e.approval != nil {
		e.Digest = in.config.Digest
	}
	return nil
}

// seal computes the key. It needs the pool's secret, so the key reveals no secret that it covers.
func (e *endpoint) seal(with []byte) {
	e.sealed = with
	mac := hmac.New(sha256.New, with)
	_ = json.NewEncoder(mac).Encode(e) // strings only, into a hash
	mac.Sum(e.key[:0])
}

// filling replaces variables in a configuration and collects the secrets in it.
type filling struct {
	config  *Config
	environ []string
	pass    []string
	own     bool           // the text referred to the plugin's directories
	secrets []child.Secret // values from the environment or from a client, and values that look like secrets
}

// put replaces the variables of a text. A literal configuration has none.
func (f *filling) put(text string) string {
	if f.config.Literal {
		return text
	}
	f.own = f.own || strings.Contains(text, "${PLUGIN_ROOT}") || strings.Contains(text, "${PLUGIN_DATA}")
	return manifest.Substitute(text, f.config.Root, f.config.Data, f.get)
}

// get returns a variable of the environment if it is in PassEnv, and so approved.
func (f *filling) get(name string) (string, bool) {
	if name == "CLAUDE_PROJECT_DIR" && f.config.Dir != "" {
		return f.config.Dir, true
	}
	if !slices.Contains(f.pass, name) {
		return "", false
	}
	value, ok := f.lookUp(name)
	f.hide(name, value)
	return value, ok
}

// hide records values as secrets. Messages show the name instead.
func (f *filling) hide(name string, values ...string) {
	for _, value := range values {
		f.secrets = append(f.secrets, child.SecretsOf(name, value)...)
	}
}

// lookUp returns a variable of lashd's environment.
func (f *filling) lookUp(name string) (string, bool) {
	for _, v := range f.environ {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// all replaces the variables in the values of a map.
func (f *filling) all(in map[string]string) map[string]string {
	out := maps.Clone(in)
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out[key] = f.put(in[key])
		if f.config.Literal {
			f.hide(key, in[key])
		}
	}
	return out
}

// home returns the home directory of the user who started lashd.
func (f *filling) home() string {
	home, _ := f.lookUp("HOME")
	return cmp.Or(home, string(filepath.Separator))
}

// names reports whether an argument is the relative path of a file of the plugin.
func (f *filling) names(arg string) bool {
	if f.config.Literal || !filepath.IsLocal(arg) || arg == "." {
		return false
	}
	_, err := os.Stat(filepath.Join(f.config.Root, arg))
	return err == nil
}
