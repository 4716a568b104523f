package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"lashd/cmd/internal/daemon"
)

// errNoDesktop says that there is no desktop whose browser the person sees.
var errNoDesktop = errors.New("there is no desktop here")

// browserCommand returns the command that opens an address in the browser of the desktop; nil if there is none. The variable BROWSER names
// another command. Over SSH, the desktop of another machine counts only if its display was forwarded, so that the browser appears where the person is.
func browserCommand(system string, getenv func(string) string, address string) []string {
	if own := chosenBrowser(getenv("BROWSER"), address); own != nil {
		return own
	}
	display := getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != ""
	remote := getenv("SSH_CONNECTION") != "" || getenv("SSH_CLIENT") != "" || getenv("SSH_TTY") != ""
	switch {
	case system == "darwin" && !remote:
		return []string{"open", address}
	case system == "windows" && !remote:
		return []string{"rundll32", "url.dll,FileProtocolHandler", address}
	case system != "darwin" && system != "windows" && display:
		return []string{"xdg-open", address}
	}
	return nil
}

// chosenBrowser returns the first command in a value of BROWSER, a list with colons, that needs no terminal, with the address at %s or at its end; nil
// if there is none.
func chosenBrowser(list, address string) []string {
	for entry := range strings.SplitSeq(list, ":") {
		words := strings.Fields(entry)
		if len(words) == 0 || slices.Contains(textBrowsers, filepath.Base(words[0])) {
			continue
		}
		if !strings.Contains(entry, "%s") {
			return append(words, address)
		}
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, "%s", address)
		}
		return words
	}
	return nil
}

// textBrowsers show pages in the terminal, which lash uses itself.
var textBrowsers = []string{"w3m", "lynx", "links", "links2", "elinks", "www-browser"}

// openAndSay opens a web address in the browser of the desktop, and says so. failed gets an error if the command that opens it fails later.
func openAndSay(address string, failed chan<- error) {
	switch err := openBrowser(address, failed); {
	case err == nil:
		fmt.Fprintln(os.Stderr, "Your browser opens it now.")
	case !errors.Is(err, errNoDesktop):
		fmt.Fprintf(os.Stderr, "lash could not open your browser (%v). Open the address above yourself.\n", err)
	}
}

// sayNotOpened says that the browser did not open after all.
func sayNotOpened(err error) {
	fmt.Fprintf(os.Stderr, "\nYour browser did not open (%v). Open the address above yourself.\n", err)
}

// openBrowser opens a web address in the browser of the desktop, which outlives lash. failed gets an error if the command that opens it fails later.
func openBrowser(address string, failed chan<- error) error {
	command := browserCommand(runtime.GOOS, os.Getenv, address)
	if command == nil {
		return errNoDesktop
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("it is no web address")
	}
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	daemon.Detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		if err := cmd.Wait(); err != nil {
			failed <- fmt.Errorf("%s: %w", command[0], err)
		}
	}()
	return nil
}
