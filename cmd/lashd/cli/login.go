package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/term"

	"lashd/cmd/lashd/providers"
	"lashd/engine/provider"
	"lashd/engine/provider/keystore"
	"lashd/engine/provider/knownmodels"
	"lashd/rpc/protocol"
)

// loginCommand implements lashd login.
type loginCommand struct {
	Provider string `arg:"" optional:"" help:"Provider, such as anthropic; lashd asks if it is missing."`
	BaseURL  string `name:"base-url" placeholder:"URL" help:"Write the address of the provider into config.toml first, as azure and bedrock need it."`
	Untested bool   `help:"Store the key without a test."`
	Device   bool   `help:"Log in to chatgpt with a code that you enter on any device."`
}

// Help is shown by --help.
func (loginCommand) Help() string {
	return `Asks for the API key of a provider, or reads it from stdin if stdin is not a terminal. Tests the key with one small request.
A key that works is stored in the system's keyring or, without one, in keys.json in the data directory, which only you can read. A
running daemon uses it at once.

A key in the environment or in config.toml takes precedence over the stored key.

For chatgpt, lashd shows an address at which you log in with a browser. Then you paste the address that the browser opened, which it cannot
load. With --device, you enter a code on a web page instead; the security settings of your account must allow that.

Examples:
  lashd login
  lashd login anthropic
  pass show openai | lashd login openai
  lashd login azure --base-url https://my-resource.openai.azure.com/openai/v1`
}

// Run asks, tests, stores and hands over the key. If that fails, config.toml keeps the address that it had.
func (c loginCommand) Run(ctx context.Context, e *environment) error {
	if c.BaseURL == "" {
		return c.login(ctx, e)
	}
	if c.Provider == "" {
		return &exitError{exitUsage, errors.New("name the provider: lashd login PROVIDER --base-url URL")}
	}
	restore, err := e.setBaseURL(c.Provider, c.BaseURL)
	if err != nil {
		return err
	}
	if err := c.login(ctx, e); err != nil {
		return errors.Join(err, restore())
	}
	e.note("a running daemon uses the address after its restart; %s", freshConfig)
	return nil
}

// login asks, tests, stores and hands over the key.
func (c loginCommand) login(ctx context.Context, e *environment) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	if c.Provider == "" {
		if c.Provider, err = askProvider(in); err != nil {
			return err
		}
	}
	if err := e.checkLogin(ctx, cfg, c.Provider); err != nil {
		return err
	}
	if !takesLogin(c.Provider) && c.Device {
		return &exitError{exitUsage, fmt.Errorf("--device is for chatgpt; %s takes a key", titleOf(c.Provider))}
	}
	from := e.keySources(cfg, "")
	if err := from.store.Check(); err != nil {
		return err // before the person enters a key that cannot be stored
	}
	if takesLogin(c.Provider) {
		return c.account(ctx, e, cfg, in)
	}
	key, err := askKey(in, c.Provider)
	if err != nil {
		return err
	}
	if !c.Untested {
		if err := e.testKey(ctx, cfg, c.Provider, key); err != nil {
			return fmt.Errorf("the key was not stored: %w", err)
		}
	}
	place, err := from.store.Set(ctx, c.Provider, key)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "stored the key of %s in %s\n", titleOf(c.Provider), e.shown(place, c.Provider))
	e.noteVariable(cfg, c.Provider)
	return e.setKey(ctx, protocol.ModelSetKeyParams{Name: c.Provider, Key: key.Reveal()})
}

// shown returns where a key was stored. If the keyring did not take it, it says so on stderr.
func (e *environment) shown(place keystore.Place, name string) string {
	if place.Failed != nil {
		e.note("%s. To move the key there later, run lashd login %s again", place.Failed, name)
	}
	return cmp.Or(place.File, "the system's keyring")
}

// checkLogin rejects a provider that is unknown, that has no address, or that needs no key.
func (e *environment) checkLogin(ctx context.Context, c config, name string) error {
	preset, known := providers.PresetOf(name)
	switch {
	case !c.knows(name):
		return &exitError{exitUsage, fmt.Errorf("unknown provider %q%s; use one of %s, or add [providers.%s] to config.toml", name, didYouMean(name, providers.Presets()), strings.Join(providers.Presets(), ", "), name)}
	case c.noAddress(name) != "":
		return fmt.Errorf("set base_url in [providers.%s] of config.toml first, or use --base-url; %s", name, c.noAddress(name))
	case known && preset.Local && c.Providers[name].Key == nil:
		e.noteLocal(ctx)
		return fmt.Errorf("%s needs no key; lashd model use %s/ID chooses one of its models", preset.Title, name)
	}
	return nil
}

// titleOf returns the name of a provider for people.
func titleOf(name string) string {
	if p, ok := providers.PresetOf(name); ok {
		return p.Title
	}
	return name
}

// askProvider asks on the terminal for one of the presets that have a key.
func askProvider(in *bufio.Reader) (string, error) {
	if !terminal(os.Stdin) {
		return "", &exitError{exitUsage, errors.New("name the provider: lashd login PROVIDER")}
	}
	names := slices.DeleteFunc(providers.Presets(), func(name string) bool {
		p, _ := providers.PresetOf(name)
		return p.Local || p.BaseURL == ""
	})
	for i, name := range names {
		fmt.Fprintf(os.Stderr, "%d  %s (%s)\n", i+1, titleOf(name), name)
	}
	fmt.Fprint(os.Stderr, "Provider: ")
	line, err := in.ReadString('\n')
	line = strings.TrimSpace(line)
	if n, notNumber := strconv.Atoi(line); notNumber == nil && n >= 1 && n <= len(names) {
		return names[n-1], nil
	}
	if line == "" {
		return "", errors.Join(errors.New("no provider was chosen"), err)
	}
	return line, nil
}

// mostPasted is the largest key that login reads, in bytes.
const mostPasted = 8 << 10

// askKey reads a key: from the terminal without echo, or all of stdin.
func askKey(in *bufio.Reader, name string) (provider.Secret, error) {
	var data []byte
	var err error
	if terminal(os.Stdin) {
		if p, ok := providers.PresetOf(name); ok && p.KeysAt != "" {
			fmt.Fprintf(os.Stderr, "Get a key at %s\n", p.KeysAt)
		}
		fmt.Fprintf(os.Stderr, "API key of %s: ", titleOf(name))
		data, err = term.ReadPassword(os.Stdin.Fd())
		fmt.Fprintln(os.Stderr)
	} else {
		data, err = io.ReadAll(io.LimitReader(in, mostPasted+1))
	}
	text := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return provider.Secret{}, fmt.Errorf("read the key: %w", err)
	case text == "":
		return provider.Secret{}, errors.New("no key was entered")
	case len(data) > mostPasted || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return provider.Secret{}, errors.New("that is no key: it must be one line without spaces")
	}
	return provider.NewSecret(text), nil
}

// testKey makes one real call with a key: a small model call if a model of the provider is known, else a request for its list of models.
func (e *environment) testKey(ctx context.Context, c config, name string, key provider.Secret) error {
	memory := provider.NewKeys(func(string) string { return "" })
	memory.Accept(name)
	if err := memory.Hand(name, key); err != nil {
		return err
	}
	source, err := c.source(keySources{memory: memory}, notSet)
	if err != nil {
		return err
	}
	id := knownmodels.Default(name)
	m, ok := source.Model(name + "/" + id)
	if ok {
		_, err := tryModel(ctx, m)
		return err
	}
	m, _ = source.Model(name + "/list")
	if issue := m.Problem(ctx); issue != nil {
		return errors.New(issue.Message)
	}
	return nil
}

// noteVariable says that a variable of this shell counts before the stored key.
func (e *environment) noteVariable(c config, name string) {
	variables := []string{}
	if p, ok := providers.PresetOf(name); ok {
		variables = p.Env
	}
	if key := c.Providers[name].Key; key != nil && key.Env != "" {
		variables = []string{key.Env}
	}
	for _, variable := range variables {
		if os.Getenv(variable) != "" {
			e.note("%s is set in this shell and counts before the stored key; unset it to use the stored one", variable)
		}
	}
}

// setKey hands a key to a running daemon, or has it forget one. Without a daemon it does nothing.
func (e *environment) setKey(ctx context.Context, p protocol.ModelSetKeyParams) error {
	l, err := e.dial(ctx, false, nil)
	if err != nil {
		return nil // the next daemon reads the store
	}
	defer l.Close()
	if err := l.Call(ctx, "model/setKey", p, nil); err != nil {
		e.note("the running daemon did not take the change: %s; %s", explain(err), freshConfig)
	}
	return nil
}

// logoutCommand implements lashd logout.
type logoutCommand struct {
	Provider string `arg:"" optional:"" help:"Provider; not needed if only one key is stored."`
}

// Help is shown by --help.
func (logoutCommand) Help() string {
	return `Deletes a key that lashd login stored. A running daemon forgets it at once. Keys in the environment stay.

Example: lashd logout anthropic`
}

// Run deletes the key from the store and from the memory of the daemon.
func (c logoutCommand) Run(ctx context.Context, e *environment) error {
	cfg, err := e.config()
	if err != nil {
		return err
	}
	store := e.keySources(cfg, "").store
	if c.Provider == "" {
		names, err := store.Names()
		if err != nil {
			return err
		}
		if len(names) != 1 {
			return &exitError{exitUsage, fmt.Errorf("name the provider; there are stored keys of: %s", strings.Join(append(names, "no other"), ", "))}
		}
		c.Provider = names[0]
	}
	had, err := store.Delete(ctx, c.Provider)
	if err != nil {
		return err
	}
	if !had {
		return fmt.Errorf("no key of %s is stored", c.Provider)
	}
	if takesLogin(c.Provider) {
		fmt.Fprintf(stdout, "deleted the login of %s\n", titleOf(c.Provider))
		return nil // the daemon reads the store
	}
	fmt.Fprintf(stdout, "deleted the key of %s\n", titleOf(c.Provider))
	return e.setKey(ctx, protocol.ModelSetKeyParams{Name: c.Provider, Forget: true})
}
