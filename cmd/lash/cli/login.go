package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providersetup"
	"lashd/cmd/lash/chat"
	"lashd/engine/provider"
)

// loginCommand implements lash login.
type loginCommand struct {
	Provider  string `arg:"" optional:"" help:"Provider, such as anthropic; lashd asks if it is missing."`
	BaseURL   string `name:"base-url" placeholder:"URL" help:"Write the address of the provider into config.toml first, as azure and bedrock need it."`
	Untested  bool   `help:"Store the key without a test."`
	Device    bool   `help:"Log in to chatgpt with a code that you enter on any device."`
	NoBrowser bool   `help:"Do not open the browser for chatgpt."`
}

// Help is shown by --help.
func (loginCommand) Help() string {
	return `Asks for the API key of a provider, or reads it from stdin if stdin is not a terminal. Tests the key with one small request.
A key that works is stored in the system's keyring or, without one, in keys.json in the data directory, which only you can read. A
running daemon uses it at once.

A key in the environment or in config.toml takes precedence over the stored key.

For chatgpt, lash opens an address in your browser, at which you log in. Then you paste the address that the browser opened, which it cannot
load. lash opens no browser without a desktop, and uses that of the variable BROWSER if it is set. With --device, you enter a code on a web page instead; the security settings of your account must allow that.

Examples:
  lash login
  lash login anthropic
  pass show openai | lash login openai
  lash login azure --base-url https://my-resource.openai.azure.com/openai/v1`
}

// Run asks, tests, stores and hands over the key. If that fails, config.toml keeps the address that it had.
func (c loginCommand) Run(ctx context.Context, e *daemon.Environment) error {
	if c.BaseURL != "" && c.Provider == "" {
		return console.Exit(console.ExitUsage, errors.New("name the provider: lash login PROVIDER --base-url URL"))
	}
	if err := c.login(ctx, e); err != nil {
		return err
	}
	if c.BaseURL != "" {
		e.Note("a running daemon uses the address after its restart; %s", daemon.FreshConfig)
	}
	return nil
}

// login asks, tests, stores and hands over the key.
func (c loginCommand) login(ctx context.Context, e *daemon.Environment) error {
	keys := keySetup{env: e, baseURL: c.BaseURL, untested: c.Untested, accounts: true}
	in := bufio.NewReader(os.Stdin)
	if c.Provider == "" {
		all, err := keys.Providers()
		if err != nil {
			return err
		}
		if c.Provider, err = askProvider(ctx, in, all); err != nil {
			return err
		}
	}
	p, err := keys.Find(ctx, c.Provider)
	if err != nil {
		return err
	}
	if config.TakesLogin(p.Name) {
		return c.account(ctx, e, in)
	}
	if c.Device {
		return console.Exit(console.ExitUsage, fmt.Errorf("--device is for chatgpt; %s takes a key", p.Title))
	}
	key, err := askKey(ctx, in, p)
	if err != nil {
		return err
	}
	progress := console.Begin("testing the key with one small request", "Ctrl-C cancels it; nothing is stored")
	lines, err := keys.Login(ctx, c.Provider, key)
	progress.End()
	if err != nil {
		return err
	}
	return tell(e, lines)
}

// tell prints the outcome of a change of keys: the first line to stdout, the others as notes.
func tell(e *daemon.Environment, lines []string) error {
	for _, l := range lines[1:] {
		e.Note("%s", l)
	}
	_, err := fmt.Fprintln(console.Stdout, lines[0])
	return err
}

// askProvider asks on the terminal for a provider.
func askProvider(ctx context.Context, in *bufio.Reader, all []chat.Provider) (string, error) {
	if !console.Terminal(os.Stdin) {
		return "", console.Exit(console.ExitUsage, errors.New("name the provider, such as: lash login anthropic; to list them: lash model providers"))
	}
	for i, p := range all {
		fmt.Fprintf(os.Stderr, "%d  %-20s %s\n", i+1, p.Title, p.State)
	}
	fmt.Fprint(os.Stderr, "Number or name of the provider (lash model providers lists more): ")
	line, err := orDone(ctx, func() (string, error) { return in.ReadString('\n') })
	if errors.Is(err, context.Canceled) {
		return "", err
	}
	line = strings.TrimSpace(line)
	if n, notNumber := strconv.Atoi(line); notNumber == nil && n >= 1 && n <= len(all) {
		return all[n-1].Name, nil
	}
	if line == "" {
		return "", unread("no provider was chosen; run lash login PROVIDER", err)
	}
	return line, nil
}

// unread returns the error of a question that got no answer: text, and why reading failed, unless the input had ended.
func unread(text string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %w", text, err)
}

// askKey reads a key: from the terminal without echo, or all of stdin.
func askKey(ctx context.Context, in *bufio.Reader, p chat.Provider) (provider.Secret, error) {
	var data []byte
	var err error
	if console.Terminal(os.Stdin) {
		if p.KeysAt != "" {
			fmt.Fprintf(os.Stderr, "Get a key at %s\n", p.KeysAt)
		}
		data, err = readHidden(ctx, os.Stdin, fmt.Sprintf("API key of %s: ", p.Title))
		fmt.Fprintln(os.Stderr)
	} else {
		data, err = io.ReadAll(io.LimitReader(in, providersetup.MaxPasted+1))
	}
	switch {
	case errors.Is(err, context.Canceled):
		return provider.Secret{}, err
	case err != nil && !errors.Is(err, io.EOF):
		return provider.Secret{}, fmt.Errorf("read the key: %w", err)
	}
	return provider.NewSecret(string(data)), nil
}

// logoutCommand implements lash logout.
type logoutCommand struct {
	Provider string `arg:"" optional:"" help:"Provider; not needed if only one key is stored."`
}

// Help is shown by --help.
func (logoutCommand) Help() string {
	return `Deletes a key that lash login stored. A running daemon forgets it at once. Keys in the environment stay.

Example: lash logout anthropic`
}

// Run deletes the key from the store and from the memory of the daemon.
func (c logoutCommand) Run(ctx context.Context, e *daemon.Environment) error {
	lines, err := keySetup{env: e}.Logout(ctx, c.Provider)
	if err != nil {
		return err
	}
	return tell(e, lines)
}
