// Empty: with an assembly file in the package, the compiler takes functions without a body.
