package upgrade

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Limits in bytes of what is read from the server, so that a wrong answer cannot fill the disk. A
// longer archive is cut, and then has the wrong checksum.
const (
	maxSums    = 1 << 20
	maxArchive = 512 << 20
)

// silence is how long the client waits for a server to connect, and to answer.
const silence = 20 * time.Second

// fetchSums returns the content of checksums.txt in the directory url.
func fetchSums(ctx context.Context, url string) ([]byte, error) {
	body, err := get(ctx, url+"/checksums.txt")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, maxSums))
	if err != nil {
		return nil, fmt.Errorf("download checksums.txt: %w", err)
	}
	return text, nil
}

// get starts to download a file. Any answer but 200 is an error. The caller closes the body, and reads it to its end to find out whether
// the connection was lost.
func get(ctx context.Context, file string) (io.ReadCloser, error) {
	at, err := url.Parse(file)
	if err == nil {
		err = allowed(at)
	}
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", file, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, file, nil)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", file, err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err) // which has the URL
	}
	if answer.StatusCode != http.StatusOK {
		answer.Body.Close()
		return nil, fmt.Errorf("download %s: the server answered %s", file, answer.Status)
	}
	return answer.Body, nil
}

// allowed returns an error for a URL whose answers others could change on the way. Plain HTTP is
// allowed on this machine only.
func allowed(u *url.URL) error {
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%s is not an https URL; releases are downloaded over https only", u.Redacted())
}

// choose finds the archive for a system in the text of checksums.txt, which comes from url. Each line has a digest and a name such as
// lash_0.2.0_linux_amd64.tar.gz, as sha256sum prints them. The name is the only place that says which version is the newest, so
// that both can never disagree.
func choose(sums []byte, url, system string) (Release, error) {
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); {
		digest, file, ok := strings.Cut(lines.Text(), "  ")
		version, ours := strings.CutSuffix(file, "_"+system+".tar.gz")
		version, named := strings.CutPrefix(version, "lash_")
		if ok && ours && named && len(digest) == 2*sha256.Size && semver.IsValid("v"+version) {
			return Release{Version: version, url: url, file: file, digest: digest}, nil
		}
	}
	return Release{}, fmt.Errorf("checksums.txt at %s has no archive for %s; build lash from source instead", url, system)
}

// counter reports the number of bytes that were written to it.
type counter struct {
	report func(bytes int64) // may be nil
	sum    int64
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	if c.sum += int64(len(p)); c.report != nil {
		c.report(c.sum)
	}
	return len(p), nil
}

// download stores the archive of a release at path and verifies its digest. It also writes the archive to counts.
func (r Release) download(ctx context.Context, path string, counts io.Writer) error {
	body, err := get(ctx, r.url+"/"+r.file)
	if err != nil {
		return err
	}
	defer body.Close()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum, counts), io.LimitReader(body, maxArchive))
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("download %s: %w", r.file, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != strings.ToLower(r.digest) {
		return fmt.Errorf("download %s: the checksum is wrong: it is %s, but checksums.txt has %s; the download may be damaged, or it was changed on the way", r.file, got, r.digest)
	}
	return nil
}

// client fetches releases. It does not follow a redirect to a URL that allowed rejects, and does not wait for a server that is silent.
var client = &http.Client{
	Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: silence, ResponseHeaderTimeout: silence, DialContext: (&net.Dialer{Timeout: silence}).DialContext,
	},
	CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 10 {
			return errors.New("stopped after 10 redirects")
		}
		return allowed(r.URL)
	},
}
