package structured_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/engine/provider"
	"lashd/engine/structured"
	"lashd/rpc/protocol"
)

// city is the schema of most tests.
var city = json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"people":{"type":"integer"}},"required":["name"],"additionalProperties":false}`)

func TestValue(t *testing.T) {
	for _, c := range []struct{ name, reply, want, problem string }{
		{"plain JSON", `{"name":"Bern","people":133000}`, `{"name":"Bern","people":133000}`, ""},
		{"JSON with spaces around and in it", "\n { \"name\" : \"Bern\" } \n", `{"name":"Bern"}`, ""},
		{"large numbers keep their digits", `{"name":"x","people":12345678901234567890}`, `{"name":"x","people":12345678901234567890}`, ""},
		{"a fence with a language", "```json\n{\"name\":\"Bern\"}\n```", `{"name":"Bern"}`, ""},
		{"a fence with a language in capitals", "```JSON\r\n{\"name\":\"Bern\"}\r\n```\n", `{"name":"Bern"}`, ""},
		{"a fence without a language", "```\n{\"name\":\"Bern\"}\n```", `{"name":"Bern"}`, ""},
		{"a fence of another language", "```python\n{\"name\":\"Bern\"}\n```", "", "the reply is not JSON"},
		{"a fence with text before it", "Here:\n```json\n{\"name\":\"Bern\"}\n```", "", "the reply is not JSON"},
		{"two fences", "```json\n{\"name\":\"a\"}\n```\n```json\n{\"name\":\"b\"}\n```", "", "the reply is not JSON"},
		{"a fence that stays open", "```json\n{\"name\":\"Bern\"}", "", "the reply is not JSON"},
		{"a fence that was not opened", "json\n{\"name\":\"Bern\"}\n```", "", "the reply is not JSON"},
		{"an empty fence", "```json\n```", "", "the reply is empty"},
		{"only ticks", "```", "", "the reply is not JSON"},
		{"nothing", " \n", "", "the reply is empty"},
		{"text", "Bern has many people.", "", "the reply is not JSON"},
		{"two values", `{"name":"a"} {"name":"b"}`, "", "the reply is not JSON"},
		{"a key that occurs twice", `{"name":"a","name":"b"}`, "", "the reply is not JSON"},
		{"a missing member", `{"people":1}`, "", "name"},
		{"a member of another type", `{"name":1}`, "", "name"},
		{"a member that the schema does not have", `{"name":"a","mayor":"b"}`, "", "mayor"},
	} {
		t.Run("part9/structured a reply that is "+c.name, func(t *testing.T) {
			value, err := structured.Value(city, c.reply)
			switch {
			case c.problem == "" && (err != nil || string(value) != c.want):
				t.Errorf("the value of %q is %s, %v; want %s", c.reply, value, err, c.want)
			case c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)):
				t.Errorf("the value of %q is %s, %v; want a problem with %q", c.reply, value, err, c.problem)
			}
		})
	}
	t.Run("part9/structured a problem is short and valid text, whatever the reply holds", func(t *testing.T) {
		_, err := structured.Value(json.RawMessage(`{"enum":["`+strings.Repeat("é", 900)+`"]}`), `"`+strings.Repeat("ö", 9000)+`"`)
		if err == nil || len(err.Error()) > 1010 || strings.ContainsRune(err.Error(), '\uFFFD') || !strings.HasSuffix(err.Error(), "…") {
			t.Errorf("the problem is %v", err)
		}
	})
}

func TestSchema(t *testing.T) {
	for _, c := range []struct{ name, raw, want, problem string }{
		{"no schema", ``, ``, ""},
		{"an empty object accepts all values", ` {} `, `{}`, ""},
		{"spaces go", "{\n \"type\": \"array\" }", `{"type":"array"}`, ""},
		{"null", `null`, "", "must be a JSON Schema, which is an object"},
		{"true", `true`, "", "must be a JSON Schema, which is an object"},
		{"text", `"object"`, "", "must be a JSON Schema, which is an object"},
		{"broken JSON", `{"type":`, "", "is not valid JSON"},
		{"a key that occurs twice", `{"type":"array","type":"object"}`, "", "is not valid JSON"},
		{"an unknown type", `{"type":"city"}`, "", "is not a valid JSON Schema"},
		{"a reference to nothing", `{"$ref":"#/$defs/city"}`, "", "is not a valid JSON Schema"},
		{"as many bytes as possible", `{"title":"` + strings.Repeat("x", 64<<10-12) + `"}`, `{"title":"` + strings.Repeat("x", 64<<10-12) + `"}`, ""},
		{"too many bytes", `{"title":"` + strings.Repeat("x", 64<<10) + `"}`, "", "has more than 65536 bytes"},
	} {
		t.Run("part9/structured a schema: "+c.name, func(t *testing.T) {
			got, err := structured.Schema(json.RawMessage(c.raw))
			switch {
			case c.problem == "" && (err != nil || string(got) != c.want):
				t.Errorf("%s, %v; want %s", got, err, c.want)
			case c.problem != "" && (err == nil || !strings.HasPrefix(err.Error(), c.problem)):
				t.Errorf("%s, %v; want a problem that begins with %q", got, err, c.problem)
			}
		})
	}
}

func TestOf(t *testing.T) {
	asked := provider.OutputSpec{JSON: true, Schema: city}
	prose := []protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, {Kind: protocol.PartProse, Text: `{"name":"Bern"}`}}
	called := append(prose[:2:2], protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c", Name: "look"}})
	for _, c := range []struct {
		name           string
		asked          provider.OutputSpec
		reply          provider.Reply
		value, problem string
	}{
		{"a value beside reasoning", asked, provider.Reply{Stop: protocol.StopEnd, Parts: prose}, `{"name":"Bern"}`, ""},
		{"a value, after which the server gave an unknown reason to stop", asked, provider.Reply{Stop: protocol.StopUnknown, Parts: prose}, `{"name":"Bern"}`, ""},
		{"a reply that stops for tool calls and has none", asked, provider.Reply{Stop: protocol.StopToolUse, Parts: prose}, `{"name":"Bern"}`, ""},
		{"an empty reply", asked, provider.Reply{Stop: protocol.StopEnd}, "", "the reply is empty"},
		{"a call without a schema", provider.OutputSpec{}, provider.Reply{Stop: protocol.StopEnd}, "", ""},
		{"a reply with tool calls", asked, provider.Reply{Stop: protocol.StopToolUse, Parts: called}, "", ""},
		{"a reply that was cut off", asked, provider.Reply{Stop: protocol.StopOutputLimit, Parts: prose}, "", ""},
		{"a reply that a filter stopped", asked, provider.Reply{Stop: protocol.StopContentFilter}, "", ""},
	} {
		t.Run("part9/structured "+c.name, func(t *testing.T) {
			if value, problem := structured.Of(c.asked, &c.reply); string(value) != c.value || problem != c.problem {
				t.Errorf("value %q, problem %q; want %q, %q", value, problem, c.value, c.problem)
			}
		})
	}
}

func TestSystem(t *testing.T) {
	t.Run("part9/structured the system prompt ends with the schema and says that nothing else follows", func(t *testing.T) {
		for prompt, begin := range map[string]string{"": "# Format of the answer\n", "You help.": "You help.\n\n# Format of the answer\n"} {
			text := structured.System(prompt, city)
			if !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, "\n\n"+string(city)) || !strings.Contains(text, "no other text and no code fence") {
				t.Errorf("%q becomes %s", prompt, text)
			}
		}
		if text := structured.System("You help.", nil); text != "You help." {
			t.Errorf("without a schema it is %s", text)
		}
	})
}
