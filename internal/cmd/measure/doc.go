// Measure prints a row for every figure that the worker is held to.
package main
