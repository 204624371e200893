// Package envfile reads files of environment variables as Node's --env-file does, which is what the
// platform's guide has providers write: a line each of NAME=value, comments with #, single, double
// or back quotes around values, over several lines if need be.
//
// A $ means itself. The public Go libraries for such files replace $NAME by that variable, which changes
// passwords and keys that have a $ in them without a word. And their errors quote the line, where this
// package's name only its number.
package envfile
