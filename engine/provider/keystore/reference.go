package keystore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"lashd/engine/proc"
	"lashd/engine/provider"
)

const (
	commandLimit = 10 * time.Second // for a command to print its key and end
	mostKey      = 8 << 10          // bytes of a key with the white space around it
)

// Reference says where a key is. Exactly one of File, Command and Keyring is set.
type Reference struct {
	File    string   // a relative path starts at Dir
	Command string   // for the shell; its output is the key
	Keyring string   // SERVICE/ACCOUNT; without a slash an account of Service
	Dir     string   // directory for File, and in which Command runs
	Environ []string // of Command
	Nonce   string   // marks the process of Command; see proc.Command
}

// Reader returns a function that reads the key, for any goroutine. A file is read each time. The outcome of a command and of the keyring
// is cached: a key for five minutes, a failure for seconds.
func (r Reference) Reader(ring *Keyring) func(context.Context) (provider.Secret, error) {
	switch {
	case r.File != "":
		return func(context.Context) (provider.Secret, error) { return r.readFile() }
	case r.Command != "":
		return newCache(r.run).get
	}
	service, account, ok := strings.Cut(r.Keyring, "/")
	if !ok {
		service, account = Service, r.Keyring
	}
	return newCache(func(ctx context.Context) (provider.Secret, error) {
		key, err := ring.Get(ctx, service, account)
		if err == nil && key == (provider.Secret{}) {
			return key, fmt.Errorf("the keyring has no entry for the service %s and the account %s", service, account)
		}
		return key, err
	}).get
}

// readFile reads the key from a file.
// It fails if the file is empty or longer than mostKey, and at once if it is a pipe or a directory.
func (r Reference) readFile() (provider.Secret, error) {
	path := r.File
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Dir, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return provider.Secret{}, err
	}
	if !info.Mode().IsRegular() { // to open a pipe waits for a writer, without any limit
		return provider.Secret{}, fmt.Errorf("%s is not a regular file; if a program makes the key, use key = {command = ...}", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return provider.Secret{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostKey+1))
	if err != nil {
		return provider.Secret{}, err
	}
	return trimmed(data, path)
}

// trimmed returns a key without the white space around it. from names its source in errors.
func trimmed(data []byte, from string) (provider.Secret, error) {
	text := strings.TrimSpace(string(data))
	switch {
	case len(data) > mostKey:
		return provider.Secret{}, fmt.Errorf("%s has more than %d bytes, which is no key", from, mostKey)
	case text == "":
		return provider.Secret{}, fmt.Errorf("%s has no key in it", from)
	}
	return provider.NewSecret(text), nil
}

// run runs the command and returns what it prints. Errors quote nothing that it prints, since a trace of its steps can hold the key.
func (r Reference) run(ctx context.Context) (provider.Secret, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandLimit, fmt.Errorf("it did not end within %s", commandLimit))
	defer cancel()
	out := &head{most: mostKey + 1}
	shell := []string{"/bin/sh", "-c", r.Command}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/c", r.Command}
	}
	p, err := proc.Start(ctx, proc.Command{
		Argv: shell, Dir: r.Dir, Env: r.Environ, Nonce: r.Nonce, Stdout: out, Stderr: io.Discard, Grace: time.Second, Drain: time.Second,
	})
	if err != nil {
		return provider.Secret{}, fmt.Errorf("the key command failed: %w", err)
	}
	exit, err := p.Wait()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err == nil && exit.Code != 0 {
		err = fmt.Errorf("exit code %d; run it in a terminal to see its messages", exit.Code)
	}
	if err != nil {
		return provider.Secret{}, fmt.Errorf("the key command failed: %w", err)
	}
	return trimmed(out.Bytes(), "the output of the key command")
}

// head keeps the first bytes that are written to it.
type head struct {
	bytes.Buffer
	most int // bytes to keep; the rest is dropped
}

// Write implements io.Writer.
// It never fails, so a command that prints too much is not stopped by a closed pipe.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), h.most-h.Len())])
	return len(p), nil
}
