"""Who asks, judges and keeps: corpus, runner, shrinker, case files, command line."""
