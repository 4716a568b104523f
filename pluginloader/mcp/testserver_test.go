//go:build unix

package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The test binary is an MCP server if it is started with a role.
const (
	roleVariable  = "LASHD_TEST_MCP"
	countVariable = "LASHD_TEST_COUNT" // a file that gets a line for each call
)

func serveGuest(role string) {
	if bad, ok := misbehaviours[role]; ok {
		bad()
		return
	}
	if role == "noisy" {
		fmt.Println("Welcome to the server!\n[1, 2, 3]\n{\"level\":\"info\",\"msg\":\"listening\"}")
		fmt.Fprintln(os.Stderr, "it is warm in here")
	}
	s := goodServer()
	if role == "shell" {
		sdk.AddTool(s, &sdk.Tool{Name: "sh", Description: "Runs a script."}, func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			out, err := exec.Command("sh", "-c", in.Text).CombinedOutput()
			return text(fmt.Sprintf("%s%v", out, err)), nil, nil
		})
		s.AddPrompt(&sdk.Prompt{Name: "run"}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			out, err := exec.Command("sh", "-c", r.Params.Arguments["script"]).CombinedOutput()
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: fmt.Sprintf("%s%v", out, err)}}}}, nil
		})
	}
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

type words struct {
	Text string `json:"text"`
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// noted writes down that a call was made.
func noted(name string) {
	f, err := os.OpenFile(os.Getenv(countVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, name)
}

type toolFunc = func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error)

// slowness is how long a slow tool works unless its call is cancelled: of a connection of HTTP that is broken, nothing tells a server.
var slowness = 2 * time.Second

// goodServer is a server with a tool for each thing that can be done.
func goodServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "good", Version: "1.2.3"}, nil)
	add := func(name string, a *sdk.ToolAnnotations, f toolFunc) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Does " + name + ".", Annotations: a}, func(ctx context.Context, r *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			noted(name)
			return f(ctx, r, in)
		})
	}
	add("echo", &sdk.ToolAnnotations{Title: "Echo of a text", ReadOnlyHint: true}, func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		return text("you said " + in.Text), nil, nil
	})
	add("again", &sdk.ToolAnnotations{IdempotentHint: true}, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		return text("again"), nil, nil
	})
	add("fails", nil, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("there is no such page")
	})
	add("pid", nil, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		return text(fmt.Sprint(os.Getpid())), nil, nil
	})
	add("env", nil, func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		if in.Text == "NOFILE" {
			var files syscall.Rlimit
			_ = syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
			return text(fmt.Sprint(files.Max)), nil, nil
		}
		dir, _ := os.Getwd()
		return text(os.Getenv(in.Text) + " in " + dir), nil, nil
	})
	add("dies", nil, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		os.Exit(3)
		return nil, nil, nil
	})
	add("slow", nil, func(ctx context.Context, _ *sdk.CallToolRequest, _ words) (*sdk.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
			noted("cancelled")
		case <-time.After(slowness):
		}
		return text("too late"), nil, nil
	})
	add("steps", nil, func(ctx context.Context, r *sdk.CallToolRequest, _ words) (*sdk.CallToolResult, any, error) {
		for n := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "step", Progress: float64(n + 1), Total: 3})
		}
		time.Sleep(50 * time.Millisecond) // what is still in the library's queue when the result comes is not shown
		return text("done"), nil, nil
	})
	add("shows", nil, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "look"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte("a picture")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("a sound")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a", Text: "a text"}},
			&sdk.ResourceLink{URI: "file:///b", Name: "b"},
			&sdk.ImageContent{MIMEType: "image/gif", Data: []byte(dot)}, // of another type than it says
		}, StructuredContent: map[string]any{"n": 1}}, nil, nil
	})
	add("asks", nil, func(ctx context.Context, r *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{
			Message:         "Which colour?",
			RequestedSchema: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"colour": {Type: "string"}}, Required: []string{"colour"}},
		})
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(answer.Action, " ", answer.Content["colour"])), nil, nil
	})
	add("grows", nil, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
		add("new", nil, func(context.Context, *sdk.CallToolRequest, words) (*sdk.CallToolResult, any, error) {
			return text("new"), nil, nil
		})
		s.RemoveTools("again")
		return text("grown"), nil, nil
	})
	return s
}

// misbehaviours are servers that do what they may not do.
var misbehaviours = map[string]func(){
	"mute":    func() { forever() },
	"exits":   func() { os.Exit(7) },
	"silent":  func() { _ = os.Stdout.Close(); forever() },
	"garbage": func() { fmt.Println(`{"jsonrpc": "2.0", "id": `); forever() },
	"babbles": func() {
		for {
			fmt.Println(strings.Repeat("la ", 1000))
		}
	},
	"huge": func() { rude(`{"jsonrpc":"2.0","method":"x","params":{"a":"` + strings.Repeat("x", 9<<20) + `"}}`) },
	"floods": func() {
		greet()
		w := bufio.NewWriter(os.Stdout)
		for {
			fmt.Fprintln(w, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		}
	},
	"stays": func() { // ignores the end of its stdin, and SIGTERM
		signal.Ignore(syscall.SIGTERM)
		greet()
		forever()
	},
	"forks": func() { // leaves a child behind that holds its pipes, in a session of its own
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout, cmd.Stderr, cmd.Stdin = os.Stdout, os.Stderr, os.Stdin
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = cmd.Start()
		greet()
		time.Sleep(100 * time.Millisecond)
		os.Exit(1)
	},
	"hangs": func() { greet(); forever() },          // after the handshake it answers nothing
	"deaf":  func() { forever() },                   // does not read
	"wrong": func() { answers(`{"tools":"many"}`) }, // its list is none
	"modern": func() { // knows only what came after initialize
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(in.Bytes(), &m)
			answer := `"error":{"code":-32601,"message":"there is no such method"}`
			switch m.Method {
			case "server/discover":
				answer = `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`
			case "tools/list":
				answer = `"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}],"resultType":"complete","ttlMs":0,"cacheScope":"private"}`
			case "tools/call":
				answer = `"result":{"content":[{"type":"text","text":"modern times"}],"resultType":"complete"}`
			}
			if m.ID != nil {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer)
			}
		}
	},
	"hasty": func() { // announces another list before the handshake
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
		time.Sleep(100 * time.Millisecond) // until it is heard
		answers(`{"tools":[{"name":"x","inputSchema":{"type":"object"}}],"content":[{"type":"text","text":"here"}]}`)
	},
	"restless": func() { // reports a change after each list
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(in.Bytes(), &m)
			switch {
			case m.Method == "initialize":
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"restless","version":"0"}}}`+"\n", m.ID)
			case m.Method == "tools/list":
				noted(fmt.Sprint(time.Now().UnixMilli()))
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}`+"\n", m.ID)
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
		}
	},
	"odd":     func() { answers(strings.ReplaceAll(oddTools, "\n", "")) },
	"curious": curious,
}

// oddTools are tools that cannot all be used.
const oddTools = `{"tools":[
	{"name":"a.b","inputSchema":{"type":"object"}}, {"name":"a_b","inputSchema":{"type":"object"}},
	{"name":"schema","inputSchema":{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}},
	{"name":"` + longName + `","description":"x","inputSchema":{"type":"object"}}, {"name":"","inputSchema":{}}]}`

const longName = "averyveryveryveryveryveryveryveryveryveryverylongnameofatoolthatdoesnothing"

func rude(line string) {
	fmt.Println(line)
	forever()
}

// greet shakes hands, and lists one tool.
func greet() { answers(`{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`, 3) }

// answers shakes hands, and answers what comes with a result: as often as asked, or for ever.
func answers(result string, times ...int) {
	in := bufio.NewScanner(os.Stdin)
	for n := 0; len(times) == 0 || n < times[0]; n++ {
		if !in.Scan() {
			forever()
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(in.Bytes(), &m)
		switch {
		case m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"rude","version":"0"}}}`+"\n", m.ID)
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
}

// forever does nothing. Where nothing else goes on, Go takes "select {}" for a deadlock and ends the process.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// dot is the header of a PNG image.
const dot = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"
