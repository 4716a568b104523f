// Clients plays the script with JSON-RPC libraries that are not lashd's own: clients LIBRARY SCRIPT WORKSPACE LASHD ARGS...
// It prints every message that it receives. It is a module of its own, so that lashd does not depend on these libraries.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"sync"
)

// client is a connection of a library. Events are passed in order to the function given at its
// creation.
type client interface {
	call(method string, params json.RawMessage) (result json.RawMessage, err error)
	notify(method string) error
	wait()
}

// libraries maps each name to the client of a library. All use the ends of lashd stdio.
var libraries = map[string]func(stream, func(json.RawMessage)) (client, error){
	"jrpc2-lines":   jrpc2Lines,
	"jrpc2-headers": jrpc2Headers,
	"jsonrpc2":      xJSONRPC2,
}

// stream is stdin and stdout of a process, as its parent has them.
type stream struct {
	io.ReadCloser
	in io.WriteCloser
}

func (s stream) Write(b []byte) (int, error) { return s.in.Write(b) }

func (s stream) Close() error { return s.in.Close() }

// step is a line of the script.
type step struct {
	Call, Await, Notify string
	Params              json.RawMessage
	Keep                map[string][]string
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 5 || libraries[os.Args[1]] == nil {
		log.Fatal("usage: clients LIBRARY SCRIPT WORKSPACE LASHD ARGS...")
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], exec.Command(os.Args[4], os.Args[5:]...)); err != nil {
		log.Fatal(err)
	}
}

func run(library, script, workspace string, lashd *exec.Cmd) error {
	file, err := os.Open(script)
	if err != nil {
		return err
	}
	defer file.Close()
	p := &player{kept: map[string]any{"$cwd": workspace}, more: make(chan struct{}, 1)}
	if err := p.connect(libraries[library], lashd); err != nil {
		return err
	}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if err := p.play(lines.Bytes()); err != nil {
			return fmt.Errorf("%s: %w", lines.Bytes(), err)
		}
	}
	p.client.wait()
	for _, event := range p.events {
		tell(map[string]any{"event": event})
	}
	return lashd.Wait()
}

func tell(what map[string]any) {
	line, err := json.Marshal(what)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(line))
}

// player plays a script.
type player struct {
	client client
	kept   map[string]any // values kept by earlier steps, by name
	at     int            // index of the first event that was not awaited
	more   chan struct{}  // buffered; has a value when there are new events

	mu     sync.Mutex
	events []json.RawMessage
}

func (p *player) connect(library func(stream, func(json.RawMessage)) (client, error), lashd *exec.Cmd) error {
	in, err := lashd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := lashd.StdoutPipe()
	if err != nil {
		return err
	}
	lashd.Stderr = os.Stderr
	if err := lashd.Start(); err != nil {
		return err
	}
	p.client, err = library(stream{out, in}, p.heard)
	return err
}

func (p *player) heard(event json.RawMessage) {
	p.mu.Lock()
	p.events = append(p.events, event)
	p.mu.Unlock()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

func (p *player) play(line []byte) error {
	var s step
	filled, err := p.filled(line)
	if err == nil {
		err = json.Unmarshal(filled, &s)
	}
	switch {
	case err != nil:
		return err
	case s.Await != "":
		return p.keep(s, p.next(s.Await))
	case s.Notify != "":
		return p.client.notify(s.Notify)
	}
	result, err := p.client.call(s.Call, s.Params)
	if err != nil {
		tell(map[string]any{"call": s.Call, "error": err}) // both libraries keep errors as JSON
		return nil
	}
	tell(map[string]any{"call": s.Call, "result": result})
	return p.keep(s, result)
}

// filled returns a line with the kept values in place of their names.
func (p *player) filled(line []byte) ([]byte, error) {
	var whole any
	if err := json.Unmarshal(line, &whole); err != nil {
		return nil, err
	}
	return json.Marshal(p.fill(whole))
}

func (p *player) fill(value any) any {
	switch v := value.(type) {
	case string:
		if kept, ok := p.kept[v]; ok {
			return kept
		}
	case []any:
		for i := range v {
			v[i] = p.fill(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = p.fill(v[name])
		}
	}
	return value
}

// keep stores the values that a step asks for.
func (p *player) keep(s step, value json.RawMessage) error {
	for name, path := range s.Keep {
		at := value
		for _, key := range path {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(at, &fields); err != nil {
				return err
			}
			at = fields[key]
		}
		var kept any
		if err := json.Unmarshal(at, &kept); err != nil {
			return errors.Join(fmt.Errorf("no value at %v", path), err)
		}
		p.kept[name] = kept
	}
	return nil
}

// next returns the first event of a type after the last awaited one.
func (p *player) next(wanted string) json.RawMessage {
	for {
		p.mu.Lock()
		if p.at == len(p.events) {
			p.mu.Unlock()
			<-p.more
			continue
		}
		event := p.events[p.at]
		p.at++
		p.mu.Unlock()
		var is struct{ Type string }
		if json.Unmarshal(event, &is) == nil && is.Type == wanted {
			return event
		}
	}
}
