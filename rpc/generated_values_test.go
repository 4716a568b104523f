package rpc_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lashd/engine/driver/standard"
)

// generator makes params of all methods from their types. Most values are valid, so that an invalid one gets far. Paths are
// in its own directory, and commands in it are harmless.
type generator struct {
	*rand.Rand
	wildness float64             // how likely a value is bad
	enums    map[string][]string // by type
	ids      map[string][]string // from responses, by prefix, newest last
	texts    []string            // bad and odd strings, as JSON
	words    map[string][]string // good strings, by the name of their member
}

// kept is the number of ids of each kind: few, so that two of them sometimes belong together.
const (
	keptIDs  = 4
	maxDepth = 6
)

// numbers are at and past each bound.
var numbers = []string{
	"0", "-0", "-1", "1", "2", "7", "63", "64", "65", "200", "201", "500", "1000", "1001", "65535", "65536", "1048576", "1048577", "2147483647", "2147483648", "-2147483648",
	"4294967296", "9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
	"18446744073709551615", "18446744073709551616", "9223372036854", "1.5", "1e3", "1e400", "-1e400", "1e-400", "123456789012345678901234567890",
}

// documents of any sort, where JSON is free.
var anyJSON = []string{
	`null`, `true`, `0`, `""`, `"x"`, `[]`, `{}`, `{"type":"object"}`, `{"type":"nonsense"}`, `{"$ref":"#"}`, `{"$ref":"#/nowhere"}`, `{"$ref":"http://127.0.0.1:1/x"}`,
	`{"type":"string","pattern":"("}`, `{"type":"string","pattern":"(a+)+$"}`, `{"enum":[]}`, `{"properties":{"a":5}}`, `{"allOf":[{"$ref":"#"}]}`, `{"minimum":1e400}`, `{"a":1e400}`, `{"":{"":""}}`,
	`{"by":1}`, `{"by":-1}`, `{"by":13}`, `{"by":18446744073709551616}`, `[[[[[[[[1]]]]]]]]`, `{"type":["object","null"],"required":"x"}`, `{"maxLength":-1}`, `{"multipleOf":0}`,
}

// malformed are values that make the message invalid JSON.
var malformed = []string{
	"\"\xff\"", "\"\xc0\x80\"", `"\ud800"`, `"\udc00\ud800"`, `"\x"`, "\"a\tb\"", "\"\x00\"", `01`, `1.`, `.5`, `+1`, `NaN`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[1,]`, `{,}`, `'x'`,
	strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70),
}

// enums are the values of each enumerated type of the wire.
func enums(t testing.TB) map[string][]string {
	t.Helper()
	var schema struct {
		Defs map[string]struct{ Enum []string } `json:"$defs"`
	}
	data, err := os.ReadFile(filepath.Join("protocol", "schema.json"))
	if err == nil {
		err = json.Unmarshal(data, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for name, def := range schema.Defs {
		all[name] = def.Enum
	}
	return all
}

func newGenerator(t testing.TB, seed uint64) *generator {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", "b", "c", "d") // so that ../../.. stays in it
	if err := os.MkdirAll(filepath.Join(dir, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	paths(t, dir)
	quoted := func(texts ...string) (all []string) {
		for _, text := range texts {
			raw, err := json.Marshal(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, string(raw))
		}
		return all
	}
	odd := quoted("", " ", "x", "\x00", "a\x00b", "a\nb", "\u2028", "\u202e", "🎈", strings.Repeat("x", 255), strings.Repeat("x", 257), strings.Repeat("é", 300), strings.Repeat("y", 70_000),
		"..", "../x", "./x", "~", "null", "%s%n", "'; DROP TABLE sessions; --", "ses_", "ses_none", "trn_none", "nod_none", "tsk_none", "dec_none", "SES_X", "*", "[", "{a", "\\", "LTE", "-1", "é\u0301",
		dir, dir+"/", dir+"/x\x00", dir+"/none/x", dir+"/file", dir+"/file/x", dir+"/link", dir+"/loop", dir+"/inner/../inner", dir+"/a\nb", dir+"/"+strings.Repeat("x", 300), dir+"/"+strings.Repeat("x/", 3000),
		"file://"+dir, "http://127.0.0.1:1/", strings.Repeat("0a", 32), strings.Repeat("0A", 32), "true")
	return &generator{
		Rand: rand.New(rand.NewPCG(seed, 0)), enums: enums(t), ids: map[string][]string{}, texts: append(odd, `"\u0000\ud83d\ude00\/"`),
		words: map[string][]string{
			"cwd": quoted(dir, dir+"/inner"), "workdir": quoted("", "inner", dir), "dir": quoted(dir + "/backup"), "driver": quoted(standard.ID), "model": quoted("m", "stalled", "asking"),
			"name":  quoted("stir", "deploy", "count", "about", "add", "forever", "s", "t", "counter", "counted"),
			"names": quoted("stir"), "tool": quoted("stir", "*"), "command": quoted("true", "echo hi", "exit 3"), "script": quoted("true", "echo hi", "exit 3", "sleep 0.01"),
			"monitorId": quoted("mon", "mon2"), "monitorIds": quoted("mon", "mon2"), "key": quoted("k", "k2"), "idempotencyKey": quoted("key1", "key2", "key3"),
			"glob": quoted("*.x", "**/*.go"), "schedule": quoted("0 0 1 1 *", "@daily"), "timeZone": quoted("UTC", "Europe/Berlin"), "uploadId": quoted("u"),
			"kind": quoted("text", "command", "reasoning"), "type": quoted("text", "n", "kitchen.ready", "cron", "file", "image/png"), "args": quoted("x"), "toNode": nil, "url": quoted("http://127.0.0.1:1/"),
		},
	}
}

func (g *generator) chance(p float64) bool { return g.Float64() < p }

func pick[T any](g *generator, all []T) T { return all[g.IntN(len(all))] }

// params returns params of a method. A few have unknown names or are not an object.
func (g *generator) params(t reflect.Type) string {
	switch {
	case g.chance(0.01):
		return pick(g, []string{`null`, `[]`, `[{}]`, `[1]`, `{}`})
	case g.chance(0.02):
		return pick(g, malformed)
	}
	defer func(w float64) { g.wildness = w }(g.wildness)
	if g.chance(0.4) {
		g.wildness = 0
	}
	raw := g.object(t, 0)
	if g.chance(0.03) {
		extra := pick(g, []string{`"_x":1`, `"zzzz":1`, `"sesionId":1`, `"":1`, `"SessionID":"x"`, `"_n":` + pick(g, malformed)})
		raw = strings.Replace(raw, "{", "{"+extra+map[bool]string{true: "", false: ","}[raw == "{}"], 1)
	}
	return raw
}

func (g *generator) object(t reflect.Type, depth int) string {
	var members []string
	g.members(t, func(f reflect.StructField, name string, optional bool) {
		if optional && !g.chance(likely(name)) || !optional && g.chance(g.wildness/10) || depth > maxDepth {
			return
		}
		value := g.value(name, f.Type, depth+1)
		key, _ := json.Marshal(name)
		members = append(members, string(key)+":"+value)
		if g.chance(0.001) {
			members = append(members, string(key)+":"+value)
		}
	})
	return "{" + strings.Join(members, ",") + "}"
}

// likely is the probability of an optional member. It is low for keys, because most would be conflicts.
func likely(name string) float64 {
	if name == "idempotencyKey" {
		return 0.04
	}
	return 0.3
}

func (g *generator) members(t reflect.Type, visit func(reflect.StructField, string, bool)) {
	for f := range t.Fields() {
		if f.Anonymous {
			g.members(f.Type, visit)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		visit(f, name, strings.Contains(options, "omit"))
	}
}

// wild is a value of any type.
func (g *generator) wild() string {
	switch g.IntN(10) {
	case 0, 1, 2, 3:
		return pick(g, g.texts)
	case 4, 5:
		return pick(g, numbers)
	case 6:
		return g.anyID()
	case 7:
		return pick(g, []string{"null", "true", "[]", "{}", "[null]", `[[]]`, `{"x":null}`})
	}
	return pick(g, anyJSON)
}

func (g *generator) value(name string, t reflect.Type, depth int) string {
	wild := g.chance(g.wildness)
	if t.Kind() == reflect.Pointer {
		return g.value(name, t.Elem(), depth)
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		return pick(g, anyJSON)
	}
	switch kind := t.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Float64 && g.wildness > 0 && g.chance(0.5+g.wildness):
		return pick(g, numbers)
	case wild && kind == reflect.String:
		return pick(g, append(g.texts[:len(g.texts):len(g.texts)], g.wild(), g.anyID()))
	case wild:
		return g.wild()
	}
	return g.good(name, t, depth)
}

func (g *generator) good(name string, t reflect.Type, depth int) string {
	switch t.Kind() {
	case reflect.Struct:
		return g.object(t, depth)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return pick(g, []string{`""`, `"aGVsbG8="`, `"%"`, `"aGVsbG8"`, `"AAAA"`})
		}
		return "[" + strings.Join(g.several(func() string { return g.value(name, t.Elem(), depth+1) }), ",") + "]"
	case reflect.Map:
		seen := map[string]bool{}
		entries := g.several(func() string {
			key := pick(g, []string{`"stir"`, `"x"`, `""`, `"a/b"`, `"X Y"`, `"\u0000"`, `"A=B"`})
			if seen[key] {
				return ""
			}
			seen[key] = true
			return key + ":" + g.value("", t.Elem(), depth+1)
		})
		return "{" + strings.Join(slices.DeleteFunc(entries, func(e string) bool { return e == "" }), ",") + "}"
	case reflect.Bool:
		return pick(g, []string{"true", "false"})
	case reflect.String:
		return g.word(name, t)
	}
	return pick(g, []string{"0", "1", "2", "10", "100", "1000"})
}

func (g *generator) several(make func() string) (all []string) {
	for range pick(g, []int{1, 1, 1, 2, 0, 3}) {
		all = append(all, make())
	}
	return all
}

// word returns a valid string: a value of the type, an existing id, or a typical value for the member.
func (g *generator) word(name string, t reflect.Type) string {
	if values := g.enums[t.Name()]; len(values) > 0 {
		raw, _ := json.Marshal(pick(g, values))
		return string(raw)
	}
	if prefix, ok := prefixes[t.Name()]; ok && len(g.ids[prefix]) > 0 {
		return `"` + pick(g, g.ids[prefix]) + `"`
	}
	if name == "dir" && g.chance(0.98) { // a backup takes long, and there is one of each name
		return pick(g, g.texts)
	}
	if words := g.words[name]; len(words) > 0 && !g.chance(0.02) {
		return pick(g, words)
	}
	return pick(g, []string{`"x"`, `"hello"`, `"s"`})
}

var prefixes = map[string]string{
	"SessionID": "ses", "TurnID": "trn", "NodeID": "nod", "TaskID": "tsk", "DecisionID": "dec", "InputID": "inp", "CallID": "call", "TriggerID": "trg", "PointID": "pnt",
	"ClientID": "cli", "CompletionKey": "dec", "Digest": "digest",
}

var digestPattern = regexp.MustCompile(`"(argsHash|digest)":"([0-9a-f]{64})"`)

var idPattern = regexp.MustCompile(`"((ses|trn|nod|tsk|dec|inp|call|trg|pnt|cli)_[0-9A-Za-z_]+)"`)

// learn takes ids from a response.
func (g *generator) learn(answer []byte) {
	for _, m := range idPattern.FindAllSubmatch(answer, 20) {
		g.keep(string(m[2]), string(m[1]))
	}
	for _, m := range digestPattern.FindAllSubmatch(answer, 20) {
		g.keep("digest", string(m[2]))
	}
}

func (g *generator) keep(prefix, id string) {
	if known := g.ids[prefix]; !slices.Contains(known, id) {
		known = append(known, id)
		g.ids[prefix] = known[max(0, len(known)-keptIDs):]
	}
}

func (g *generator) anyID() string {
	if len(g.ids) == 0 {
		return `"ses_none"`
	}
	return `"` + pick(g, g.ids[pick(g, slices.Sorted(maps.Keys(g.ids)))]) + `"`
}

// fresh are requests that create objects for others to name.
func (g *generator) fresh() []string {
	cwd := g.words["cwd"][0]
	all := []string{"session/new", fmt.Sprintf(`{"cwd":%s,"approval":{"mode":"ask"}}`, cwd), "session/new", fmt.Sprintf(`{"cwd":%s,"model":"asking","approval":{"mode":"ask"}}`, cwd)}
	if known := g.ids["ses"]; len(known) > 0 {
		for _, id := range known[max(0, len(known)-2):] {
			in := fmt.Sprintf(`{"sessionId":%q,`, id)
			all = append(all, "turn/start", in+hello+`}`, "snapshot/create", in+`"name":"s"}`, "graph/append", in+`"nodes":[{"plugin":{"type":"n","body":1}}]}`,
				"task/start", in+`"spec":{"kind":"command","recovery":"ownerBound","command":{"script":"echo hi"}}}`,
				"task/start", in+`"spec":{"kind":"command","recovery":"ownerBound","command":{"script":"sleep 3"}}}`,
				"session/setOverlay", in+`"tools":[{"name":"deploy","description":"Deploys."}]}`, "turn/list", in+`"limit":5}`,
				"trigger/register", in+`"key":"k","source":{"type":"kitchen.ready"},"action":{"kind":"wakeSession","text":"x"}}`,
				"artifact/write", in+`"uploadId":"u","bytes":"aGVsbG8="}`)
		}
	}
	return all
}
