// Package secret holds secrets that don't print, and seals what goes to disk.
//
// The smallest complete use:
//
//	key, err := secret.FromEnv("AGENTJOB_PROVIDER_KEY")
//	if err != nil {
//		return err
//	}
//	slog.Info("starting", "key", key) // key=[redacted]
//	req.Header.Set("Authorization", "Bearer "+key.Reveal())
//
//	sealer, err := secret.NewSealer(ctx, secret.FileKeys("/var/lib/agent/seal.key"))
//	if err != nil {
//		return err
//	}
//	sealed := sealer.Seal([]byte("private text"), []byte("record 7"))
//	text, err := sealer.Open(sealed, []byte("record 7"))
//
// # Secrets
//
// A [Secret] prints as [redacted] through fmt, log/slog, encoding/json and other
// printers, also where it is an unexported field. [Secret.Reveal]
// is the one way to its value: call it where the value goes on the wire or
// into a private file. A Secret is made by [New] or [FromEnv]. It can't be decoded from
// JSON or text, since what was encoded is the word [redacted], and reading
// that back would make it the secret.
//
// # Keys
//
// A [KeySource] supplies the keys of a [Sealer]: [FileKeys] a file made on
// first use, [EnvKeys] an environment variable, [KeyFunc] anything else such
// as a keyring or a cloud's key service. The first key seals; all of them open. To rotate, put a new key
// before the old one and restart; remove the old one when everything sealed
// with it has been replaced or has expired.
//
// A key that is lost can't be replaced: what it sealed can't be read again.
// Back the key file up, but not together with the data that it seals.
//
// # Errors
//
// [ErrKeyUnknown], [ErrTampered] and [ErrKeyFile] are matched with errors.Is.
// No error holds a secret, a key or a text.
//
// # Security
//
// Sealing is AES-256-GCM of the standard library with a random nonce for each message. One
// key is good for 2^32 messages, far beyond a provider's life. The associated
// data ties a sealed text to its place, so that texts can't be swapped between
// records. Sealing doesn't hide lengths, nor an older text of the same record
// put back in place. Values stay in the process's memory; this package doesn't lock
// or wipe it.
//
// # Compatibility
//
// The first byte of a sealed text is the format's version, today 1. Later
// releases read it. The package imports the standard library and one
// internal package that does the same.
package secret
