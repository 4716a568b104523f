package e2e

import (
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/provider/chatgpt"
	"lashd/rpc/protocol"
	"lashd/test/secretservice"
)

// canary is a key with a number, which occurs nowhere else.
func canary(n int) string { return fmt.Sprintf("sk-canary%02d-5f1c9a7e3b%02d", n, n) }

// canaries is how many keys TestCanaries gives lashd.
const canaries = 34

// spelled are the forms in which a key may lie in a file: plain, and in base64 at each of the three alignments.
func spelled(key string) []string {
	forms := []string{key}
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte("aaa"[:shift] + key))
		forms = append(forms, text[4:len(text)-4])
	}
	return forms
}

// found returns the numbers of the canaries in a text.
func found(text string) (numbers []int) {
	for n := 1; n <= canaries; n++ {
		if slices.ContainsFunc(spelled(canary(n)), func(form string) bool { return strings.Contains(text, form) }) {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// parrot is a model server that repeats the URL and the headers of each request, with the keys in them, in the way that mode says. It is
// an authorization server as well, and repeats the refresh token.
type parrot struct {
	mode atomic.Value
	seen [canaries + 1]atomic.Bool // canaries that came as keys
}

// answers are the ways in which a parrot answers.
var answers = map[string]func(w http.ResponseWriter, said string){
	"rejection": func(w http.ResponseWriter, said string) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"type":"authentication_error","message":%q}}`, "bad key "+said)
	},
	"rejection with a web page": func(w http.ResponseWriter, said string) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<html><body>%s</body></html>", said)
	},
	"malformed answer": func(w http.ResponseWriter, said string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"oops\": %s\n\n", said)
	},
	"answer that is no stream": func(w http.ResponseWriter, said string) { fmt.Fprintf(w, `["%s"]`, said) },
	"error event": func(w http.ResponseWriter, said string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"error\":{\"code\":\"invalid_api_key\",\"message\":%q}}\n\n", said)
	},
}

// ServeHTTP implements http.Handler.
func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refresh := ""
	if strings.HasSuffix(r.URL.Path, "/oauth/token") {
		refresh = r.PostFormValue("refresh_token")
	}
	io.Copy(io.Discard, r.Body) // the conversation has no keys
	user, password, _ := r.BasicAuth()
	said := fmt.Sprint(user, " ", password, " ", r.URL, " ", r.Header, " ", refresh)
	for _, n := range found(said) {
		p.seen[n].Store(true)
	}
	answers[p.mode.Load().(string)](w, said)
}

// variables are environment variables with keys. The first ones are those of the presets.
var variables = []string{
	"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "AZURE_OPENAI_API_KEY",
	"AWS_BEARER_TOKEN_BEDROCK", "TOP_LEVEL_KEY", "MODEL_KEY", "PROVIDER_KEY",
}

// planted is a world with canaries in every way that a key can reach lashd.
type planted struct {
	*world
	parrot *parrot
	peer   *peer
	models []string
	ring   *secretservice.Service
	guard  *guard
}

// newPlanted writes a configuration with a model for each key.
func newPlanted(t *testing.T) *planted {
	c := &planted{world: newWorld(t, "allow"), parrot: &parrot{}, ring: secretservice.Start(t)}
	c.parrot.mode.Store("rejection")
	server := httptest.NewServer(c.parrot)
	t.Cleanup(server.Close)
	for i, name := range variables {
		c.env = append(c.env, name+"="+canary(i+1))
	}
	host := strings.TrimPrefix(server.URL, "http://")
	c.env = append(c.env, "LASHD_KEYRING=", "DBUS_SESSION_BUS_ADDRESS="+c.ring.Address, fmt.Sprintf("OPENAI_BASE_URL=http://%s/v1?api-key=%s", host, canary(25)))
	var config strings.Builder
	config.WriteString("approval = \"allow\"\nsandbox = \"fullAccess\"\ntrace = true\nkey_env = \"TOP_LEVEL_KEY\"\n")
	model := func(name, more string) {
		config.WriteString(fmt.Sprintf("[[models]]\nname = %q\nid = \"m\"\n%s\n", name, more))
		c.models = append(c.models, name)
	}
	model("top", "") // at OPENAI_BASE_URL
	model("own", fmt.Sprintf("base_url = \"http://%s/v1\"\nkey_env = \"MODEL_KEY\"", host))
	model("userinfo", fmt.Sprintf("base_url = \"http://%s:%s@%s/v1\"\nkey_env = \"NO_KEY\"", canary(19), canary(20), host))
	servers := map[string]string{
		"anthropic": "", "openai": "", "google": "", "openrouter": "", "azure": "", "bedrock": "", "stored": "", "handed": "", "ringed": "", "served": "",
		"variable": `key = {env = "PROVIDER_KEY"}`,
		"relative": `key = {file = "relative.key"}`,
		"absolute": fmt.Sprintf("key = {file = %q}", filepath.Join(c.user, "absolute.key")),
		"command":  fmt.Sprintf("key = {command = %q}", "env >"+filepath.Join(c.work, "env-command")+"; cat "+filepath.Join(c.user, "command.key")),
		"failing":  fmt.Sprintf("key = {command = %q}", "cat "+filepath.Join(c.user, "failing.key")+" >&2; exit 1"),
		"headers":  fmt.Sprintf("headers = {X-Team = %q, Authorization = %q}", canary(17), "Bearer "+canary(18)),
		"query":    "",
		"chatgpt":  fmt.Sprintf("login = \"http://%s\"", host),
	}
	apis := []string{"chat", "responses", "anthropic", "gemini"}
	presets := map[string]string{"anthropic": "anthropic", "openai": "responses", "google": "gemini", "query": "gemini", "chatgpt": "responses"}
	for i, name := range slices.Sorted(maps.Keys(servers)) {
		model(name, fmt.Sprintf("provider = %q", name))
		api := apis[i%len(apis)]
		if presets[name] != "" {
			api = presets[name]
		}
		query := ""
		if name == "query" {
			query = fmt.Sprintf("?key=%s&access_token=%s", canary(21), canary(22))
		}
		servers[name] += fmt.Sprintf("\napi = %q\nbase_url = \"http://%s/v1%s\"\n", api, host, query)
	}
	for name, lines := range servers {
		config.WriteString(fmt.Sprintf("[providers.%s]\n%s\n", name, lines))
	}
	c.write(c.inside("config.toml"), config.String())
	c.write(c.inside("relative.key"), canary(11)+"\n")
	tokens := chatgpt.Tokens{Access: provider.NewSecret(canary(26)), Refresh: provider.NewSecret(canary(27))}
	c.write(c.inside("keys.json"), fmt.Sprintf(`{"chatgpt": {"key": %q}}`, tokens.Secret().Reveal()))
	c.write(filepath.Join(c.user, "absolute.key"), canary(12)+"\n")
	c.write(filepath.Join(c.user, "command.key"), canary(13)+"\n")
	c.write(filepath.Join(c.user, "failing.key"), canary(14)+"\n")
	c.guard = newGuard(c)
	c.children()
	return c
}

// children installs programs that write down their environment: a plugin that panics with it, and an MCP server.
func (c *planted) children() {
	c.has("python")
	c.plugin("panics", map[string]string{
		"main.py": fmt.Sprintf(`
import os
def execute(name, args):
    text = open("/proc/self/environ").read() + open("/proc/%%d/environ" %% os.getppid()).read()
    open(%q, "w").write(text)
    raise RuntimeError("panic: " + text)
`, filepath.Join(c.work, "env-plugin")) + plainProgram,
		"plugin.json": `{"name":"panics","lashd":{"process":{"command":["python3","${PLUGIN_ROOT}/main.py"]},"tools":[{"name":"panic","description":"d"}]}}`,
	})
	c.plugin("serves", map[string]string{".mcp.json": mcpJSON(map[string]server{
		"guarded": {URL: c.guard.URL + "/mcp"},
		"sdk":     {Command: "sh", Args: []string{"-c", "env >" + filepath.Join(c.work, "env-mcp") + "; exec " + goServer(c.t)}},
	})})
}

// login stores a key in the file without a test, and fails to store it with one.
func (c *planted) login() {
	c.t.Helper()
	for code, args := range map[int][]string{1: {"login", "stored"}, 0: {"login", "--untested", "stored"}} {
		cmd := c.command(args...)
		cmd.Stdin, cmd.Stderr, cmd.Env = strings.NewReader(canary(15)+"\n"), nil, append(cmd.Env, "LASHD_KEYRING=off")
		out, _ := cmd.CombinedOutput() // the exit code is in ProcessState
		if got := cmd.ProcessState.ExitCode(); got != code {
			c.t.Errorf("lashd %q exits %d, want %d: %s", args, got, code, out)
		}
		c.clean(fmt.Sprintf("the output of lashd %q", args), string(out))
	}
}

// ringed stores a key in the keyring.
func (c *planted) ringed() {
	c.t.Helper()
	cmd := c.command("login", "--untested", "ringed")
	cmd.Stdin, cmd.Stderr = strings.NewReader(canary(28)+"\n"), nil
	out, err := cmd.CombinedOutput()
	if err != nil || c.ring.Secrets()["ringed in "+c.dir] != canary(28) {
		c.t.Errorf("%v: %s; the keyring has %d secrets", err, out, len(c.ring.Secrets()))
	}
	c.clean("the output of lash login", string(out))
	if keys, err := os.ReadFile(c.inside("keys.json")); err != nil || slices.Contains(found(string(keys)), 28) {
		c.t.Errorf("part9/keys keys.json has the key of the keyring: %v", err)
	}
}

// served has the daemon store a key, which fails with a test and works without one.
func (c *planted) served() {
	c.t.Helper()
	for _, mode := range []string{"rejection", "rejection with a web page"} {
		c.parrot.mode.Store(mode)
		_, err := try[protocol.StoredKey](c.peer, "provider/setKey", protocol.ProviderSetKeyParams{Name: "served", Key: canary(29)})
		if err == nil {
			c.t.Errorf("a key was stored although its test ended with: %s", mode)
			continue
		}
		c.clean("the error of provider/setKey after: "+mode, fmt.Sprintf("%+v", err))
	}
	ask[protocol.StoredKey](c.peer, "provider/setKey", protocol.ProviderSetKeyParams{Name: "served", Key: canary(30), Untested: true})
	if c.ring.Secrets()["served in "+c.dir] != canary(30) {
		c.t.Errorf("the keyring has %d secrets, without the key that the daemon stored", len(c.ring.Secrets()))
	}
	list := ask[protocol.ProviderListResult](c.peer, "provider/list", protocol.Empty{})
	c.clean("the list of providers", fmt.Sprintf("%+v", list))
	if i := slices.IndexFunc(list.Data, func(p protocol.ProviderInfo) bool { return p.Name == "served" }); i < 0 || list.Data[i].Key != "stored" {
		c.t.Errorf("%+v", list.Data)
	}
}

// conversations has a turn with each model in each mode, and calls of tools.
func (c *planted) conversations() {
	c.t.Helper()
	id := c.peer.session(c.home)
	for _, mode := range slices.Sorted(maps.Keys(answers)) {
		c.parrot.mode.Store(mode)
		for _, model := range c.models {
			c.peer.uses(id, model)
			if r := c.peer.wait(c.peer.start(id, mode).TurnID); r.State != protocol.TurnFailed {
				c.t.Errorf("%s with %s: the turn is %s", mode, model, r.State)
			}
		}
		ask[protocol.Empty](c.peer, "model/setKey", protocol.ModelSetKeyParams{Name: "handed", Key: canary(23)})
		c.write(c.inside("relative.key"), canary(24)+"\n")
	}
	call := func(tool string, args any) {
		ask[protocol.ToolCallResult](c.peer, "tool/call", protocol.ToolCallParams{SessionID: id, Name: tool, Args: []byte(mustArgs(args))})
	}
	call("shell", shellArgs{"env >env-shell; cat /proc/self/environ /proc/$PPID/environ >>env-shell 2>/dev/null; env"})
	call("panic", map[string]string{})
}

// clean fails the test if a text holds canaries.
func (c *planted) clean(where, text string) {
	c.t.Helper()
	if n := found(text); n != nil {
		at := -1
		for _, form := range spelled(canary(n[0])) {
			at = max(at, strings.Index(text, form))
		}
		c.t.Errorf("part9/keys %s has the canaries %v: …%.200q…", where, n, text[max(0, at-100):])
	}
}

// files checks all files below a directory except those that a person wrote there.
func (c *planted) files(dir string, except ...string) {
	c.t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || slices.Contains(except, d.Name()) {
			return err
		}
		data, err := os.ReadFile(path)
		c.clean(path, string(data))
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// processes checks the command lines of all processes.
func (c *planted) processes() {
	c.t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		c.t.Fatal("no processes are listed:", err)
	}
	for _, path := range lines {
		line, _ := os.ReadFile(path) // the process may have ended
		c.clean(path, string(line))
	}
}

func TestCanaries(t *testing.T) {
	t.Run("part9/keys no key is stored, logged, shown or passed on", func(t *testing.T) {
		t.Parallel()
		c := newPlanted(t)
		logFile := filepath.Join(t.TempDir(), "log")
		d := c.serveLogging(logFile)
		c.peer = c.dial("")
		c.peer.loads("panics", nil)
		c.peer.loads("serves", nil)
		ask[protocol.Empty](c.peer, "model/setKey", protocol.ModelSetKeyParams{Name: "handed", Key: canary(16)})
		c.login()
		c.ringed()
		c.served()
		c.signsIn()
		c.conversations()
		c.processes()
		for _, args := range [][]string{{"doctor"}, {"config"}, {"model"}, {"session"}, {"doctor", "--json"}, {"config", "--json"}, {"model", "--json"}, {"session", "--json"}, {"call", "model/list"}, {"call", "server/diagnostics"}} {
			_, out := c.outcome(args...)
			c.clean(fmt.Sprintf("the output of lashd %q", args), out)
		}
		events, _ := c.peer.events()
		if len(events) < 5*len(c.models) {
			t.Errorf("the client received %d events of %d models", len(events), len(c.models))
		}
		for _, e := range events {
			c.clean("an event", e.raw)
		}
		planted := []string{"config.toml", "keys.json", "relative.key"}
		c.files(c.dir, planted...)
		for _, name := range []string{"env-shell", "env-plugin", "env-mcp", "env-command"} {
			if c.size(name) == 0 {
				t.Errorf("%s is empty, so the process did not run", name)
			}
		}
		c.files(c.work)
		d.stop()
		c.files(c.dir, planted...)
		c.files(filepath.Dir(logFile))
		for n := 1; n <= canaries; n++ { // a key that was never used proves nothing
			if want := !slices.Contains(unused, n); c.parrot.seen[n].Load() != want {
				t.Errorf("canary %d reached the model server: %v, want %v", n, !want, want)
			}
		}
	})
}

// unused are the canaries that no request carries: GOOGLE_API_KEY, of which GEMINI_API_KEY comes first, and what a command wrote to
// its standard error.
var unused = []int{4, 14}
