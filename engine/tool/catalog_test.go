package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

func TestContracts(t *testing.T) {
	t.Run("plugin/TL-01 listing fetches no contract, and each contract is fetched once", func(t *testing.T) {
		l := lazily("a", "b", "c")
		r := registry(t, "p", l)
		k := NewComposer(Composition{Base: r})
		c := must[*View](t)(k.Catalog(0))
		ok(t, r.Refresh())
		r.State()
		c.Names()
		c.Fingerprint()
		if len(l.made) != 0 {
			t.Fatalf("contracts were made: %v", l.made)
		}
		if _, err := c.Admit("b", json.RawMessage(`{"x":1}`)); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]int{"b": 1}, l.made); diff != "" {
			t.Error(diff)
		}
		for range 2 {
			if got := len(c.Manifests()); got != 3 || string(c.Manifests()[0].Input) != `{"type":"object","required":["x"]}` {
				t.Errorf("the model sees %+v", c.Manifests())
			}
			c.Records()
			c.Project()
			ok(t, k.Refresh())
			c = must[*View](t)(k.Catalog(0))
		}
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1}, l.made); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("plugin/TL-01 a changed manifest gets a new contract", func(t *testing.T) {
		l := lazily("a", "b")
		r := registry(t, "p", l)
		r.Catalog().Manifests()
		l.tools[0].Manifest.Description = "other"
		ok(t, r.Refresh())
		r.Catalog().Manifests()
		if diff := cmp.Diff(map[string]int{"a": 2, "b": 1}, l.made); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("plugin/TL-01 the model sees a tool only while its contract is available", func(t *testing.T) {
		l := lazily("a")
		r := registry(t, "p", l, "q", offers("b"))
		l.fail = errors.New("server is down")
		c := r.Catalog()
		if got := c.Manifests(); len(got) != 1 || got[0].Name != "b" {
			t.Errorf("the model sees %+v", got)
		}
		if got := c.Project(); len(got) != 2 || got[0].Contract != nil {
			t.Errorf("projected %+v", got)
		}
		l.fail = nil
		if got := c.Manifests(); len(got) != 2 {
			t.Errorf("later the model sees %+v", got)
		}
	})
	t.Run("the model does not see an internal tool, but it can be called", func(t *testing.T) {
		k := offers("a", "b")
		k.tools[0].Manifest.Activation = protocol.ActivateInternal
		c := registry(t, "p", k).Catalog()
		if got := c.Manifests(); len(got) != 1 || got[0].Name != "b" {
			t.Errorf("the model sees %+v", got)
		}
		if _, err := c.Admit("a", empty); err != nil {
			t.Error(err)
		}
	})
}

func TestOrder(t *testing.T) {
	t.Run("plugin/S-04 tools are ordered by id or by an explicit list", func(t *testing.T) {
		r := registry(t, "p", offers("1=c", "3=a"), "o", offers("2=b"))
		for _, c := range []struct {
			access Access
			want   string
		}{
			{Access{}, "c b a"},
			{Access{Tools: named("2=b", "3=a", "1=c")}, "b a c"},
			{Access{Names: []string{"a", "c", "none", "a"}}, "a c"},
			{Access{Tools: named("2=b"), Names: []string{"b", "a"}}, "b a"},
		} {
			got, err := Rules{Access: c.access}.catalog(r.now.Load())
			if err != nil || names(got) != c.want {
				t.Errorf("%+v: %q, %v; want %q", c.access, got.Names(), err, c.want)
			}
		}
		off := registry(t, "p", offers("a", "b"))
		must[protocol.ToolState](t)(off.SetMembership(1, map[string]bool{"a": false}))
		if c, err := (Rules{Access: Access{Names: []string{"b", "a"}}}).catalog(off.now.Load()); err != nil || names(c) != "b" {
			t.Errorf("catalog %q, %v", c.Names(), err)
		}
		if got := r.Catalog().Manifests(); got[0].Name != "c" || got[2].Name != "a" {
			t.Errorf("the model sees %+v", got)
		}
	})
	t.Run("the fingerprint covers names and their order", func(t *testing.T) {
		print := func(words ...string) uint64 { return registry(t, "p", offers(words...)).Catalog().Fingerprint() }
		base := print("1=ab", "2=c")
		if print("1=ab", "2=c") != base || print("5=ab", "6=c") != base {
			t.Error("the same names differ")
		}
		for _, other := range [][]string{{"1=c", "2=ab"}, {"1=a", "2=bc"}, {"1=ab"}, {"1=abc"}, {}} {
			if print(other...) == base {
				t.Errorf("%v is the same", other)
			}
		}
	})
}

func TestRules(t *testing.T) {
	removes := func(seen *[]string, names ...string) Contributor {
		return func(l Listing) ([]string, error) {
			for _, m := range l.Manifests {
				*seen = append(*seen, m.Name)
			}
			l.Manifests[0].Name = "junk"
			return names, nil
		}
	}
	r := registry(t, "p", offers("a", "b", "c", "d", "e"))
	t.Run("plugin/TL-14 contributors see all tools, then the session and the authority remove more", func(t *testing.T) {
		var first, second []string
		c, err := Rules{
			Contributors: []Contributor{removes(&first, "b"), removes(&second, "none")},
			Remove:       []string{"c"}, Access: Access{Hidden: []string{"a"}},
		}.catalog(r.now.Load())
		if err != nil || names(c) != "d e" {
			t.Errorf("catalog %q, %v", c.Names(), err)
		}
		if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(first, want) || !slices.Equal(second, want) {
			t.Errorf("seen %q and %q", first, second)
		}
		if rec := c.Records()[0]; rec.Name != "a" || rec.Member {
			t.Errorf("record %+v", rec)
		}
	})
	t.Run("plugin/TL-14 a contributor that fails or panics fails the catalog", func(t *testing.T) {
		failed := errors.New("failed")
		for _, bad := range []Contributor{
			func(Listing) ([]string, error) { return nil, failed },
			func(Listing) ([]string, error) { panic(failed) },
		} {
			if _, err := (Rules{Contributors: []Contributor{bad}}).catalog(r.now.Load()); err == nil || !strings.Contains(err.Error(), "failed") {
				t.Errorf("error %v", err)
			}
		}
	})
	t.Run("plugin/TL-14 a contributor can ask for contracts", func(t *testing.T) {
		l := lazily("a", "b")
		ask := func(l Listing) ([]string, error) {
			c, err := l.Contract("b")
			if _, missing := l.Contract("x"); c.Replay != protocol.ReplaySafe || !errors.Is(missing, ErrUnknown) {
				return nil, fmt.Errorf("contract %+v; unknown: %v", c, missing)
			}
			return nil, err
		}
		if _, err := (Rules{Contributors: []Contributor{ask}}).catalog(registry(t, "p", l).now.Load()); err != nil || l.made["a"] != 0 {
			t.Errorf("error %v, made %v", err, l.made)
		}
	})
	t.Run("plugin/TL-15 an explicit list replaces tools and contracts, in its order", func(t *testing.T) {
		p := offers("1=a", "2=b")
		list := named("9=z", "2=bee")
		list[1].Contract.Input = json.RawMessage(`{"type":"object","required":["y"]}`)
		c, err := Rules{Access: Access{Tools: list}}.catalog(registry(t, "p", p).now.Load())
		if err != nil || names(c) != "z bee" {
			t.Fatalf("catalog %q, %v", c.Names(), err)
		}
		for name, code := range map[string]string{"a": CodeUnavailable, "bee": CodeArgs} {
			_, err := c.Admit(name, empty)
			if refused, ok := errors.AsType[*CallError](err); !ok || refused.Code != code {
				t.Errorf("call of %s: %v", name, err)
			}
		}
		e, err := c.Admit("bee", json.RawMessage(`{"y":1}`))
		ok(t, err)
		if got := must[Result](t)(e.Execute(t.Context(), Invocation{})); got.Output.Text != "ran 2" {
			t.Errorf("result %+v", got)
		}
		z, _ := c.Lookup("z")
		if got := must[Result](t)(z.Execute(t.Context(), Invocation{})); got.Output.Failure == nil || got.Output.Failure.Code != CodeUnavailable {
			t.Errorf("result of a tool without a provider: %+v", got)
		}
	})
}

func TestRecords(t *testing.T) {
	t.Run("plugin/TL-17 the projected record has the documented keys", func(t *testing.T) {
		k := &kit{tools: []Tool{
			{Manifest: protocol.ToolManifest{ID: "1", Name: "a", Description: "A.", Input: empty, Kind: protocol.ToolKindRead,
				Bindings: map[string]json.RawMessage{"rlm": json.RawMessage(`"fs.a"`)}, Activation: protocol.ActivateInternal}},
			{Manifest: protocol.ToolManifest{Name: "b"}},
		}}
		l := lazily("c")
		l.fail = errors.New("down")
		got, err := json.Marshal(registry(t, "p", k, "q", l).Catalog().Project())
		want := `[{"id":"1","name":"a","description":"A.","bindings":{"rlm":"fs.a"},"activation":"internal","contract":{"replay":"","input":{}}},` +
			`{"id":"b","name":"b","description":"","bindings":{},"activation":"always","contract":{"replay":""}},` +
			`{"id":"c","name":"c","description":"does c","bindings":{},"activation":"always"}]`
		if err != nil || string(got) != want {
			t.Errorf("%v\n%s, want\n%s", err, got, want)
		}
	})
	record := func(m protocol.ToolManifest, c protocol.ToolContract) protocol.ToolRecord {
		return registry(t, "p", &kit{tools: []Tool{{m, c}}}).Catalog().Records()[0]
	}
	t.Run("the revision changes with manifest and contract", func(t *testing.T) {
		m := protocol.ToolManifest{Name: "a", Description: "12345", Input: json.RawMessage(`{"type":"object"}`)}
		seen := map[protocol.Digest]string{}
		for name, change := range map[string]func(*protocol.ToolManifest, *protocol.ToolContract){
			"base": func(*protocol.ToolManifest, *protocol.ToolContract) {}, "schema": func(m *protocol.ToolManifest, _ *protocol.ToolContract) { m.Input = empty },
			"text": func(m *protocol.ToolManifest, _ *protocol.ToolContract) { m.Description = "x" }, "replay": func(_ *protocol.ToolManifest, c *protocol.ToolContract) { c.Replay = "safe" },
			"broken": func(m *protocol.ToolManifest, _ *protocol.ToolContract) { m.Input = json.RawMessage(`{`) },
		} {
			m, c := m, protocol.ToolContract{}
			change(&m, &c)
			got := record(m, c).Revision
			if other, taken := seen[got]; taken || got != record(m, c).Revision {
				t.Errorf("%s has the revision of %s, or none of its own", name, other)
			}
			seen[got] = name
		}
	})
	t.Run("tokens are estimated as a quarter of the bytes", func(t *testing.T) {
		m := protocol.ToolManifest{Name: "a", Description: "12345", Input: json.RawMessage(`{"type":"object"}`)}
		if got := record(m, protocol.ToolContract{}); got.Tokens != (1+5+17)/4 || string(got.Input) != `{"type":"object"}` || got.Contract.Input != nil || got.Source != "p" {
			t.Errorf("record %+v", got)
		}
	})
}

func TestGate(t *testing.T) {
	l := lazily("c")
	l.fail = errors.New("down")
	strict := offers("read_file", "write")
	strict.tools[1].Contract.Input = json.RawMessage(`{"type":"object","required":["path"]}`)
	c := registry(t, "p", strict, "q", l).Catalog()
	t.Run("plugin/TL-18 a call is admitted if tool and contract exist and the arguments match", func(t *testing.T) {
		codes := map[string]string{}
		for _, call := range []string{"read_file {}", "write {}", `write {"path":"x"}`, "c {}", "none {}", "write null"} {
			name, args, _ := strings.Cut(call, " ")
			_, err := c.Admit(name, json.RawMessage(args))
			codes[call] = ""
			if refused, ok := errors.AsType[*CallError](err); ok {
				codes[call] = refused.Code
				if out := Refusal(err); out.Failure.Code != refused.Code || out.Status != protocol.OutputFailure {
					t.Errorf("%s: output %+v", call, out)
				}
			}
		}
		want := map[string]string{
			"read_file {}": "", "write {}": "invalid_tool_args", `write {"path":"x"}`: "", "c {}": "tool_contract_unavailable",
			"none {}": "tool_unavailable", "write null": "invalid_tool_args",
		}
		if !maps.Equal(codes, want) {
			t.Errorf("codes %v, want %v", codes, want)
		}
		if len(strict.ran) != 0 {
			t.Errorf("ran %+v", strict.ran)
		}
	})
	t.Run("a misspelled name finds the nearest tool", func(t *testing.T) {
		for name, want := range map[string]string{"Read_File": "read_file", "readFile": "read_file", "read-file": "read_file", "remove": "", "": ""} {
			if got := c.Nearest(name); got != want {
				t.Errorf("%q is almost %q, want %q", name, got, want)
			}
		}
		if _, err := c.Admit("readFile", empty); err == nil || !strings.Contains(err.Error(), `did you mean "read_file"?`) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a catalog does not change when the registry does", func(t *testing.T) {
		r := registry(t, "p", offers("a", "b"))
		before := r.Catalog()
		must[protocol.ToolState](t)(r.SetMembership(1, map[string]bool{"b": false}))
		if names(before) != "a b" || names(r.Catalog()) != "a" {
			t.Errorf("before %q, after %q", before.Names(), r.Catalog().Names())
		}
	})
}
