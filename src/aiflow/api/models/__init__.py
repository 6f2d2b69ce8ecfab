"""What the API answers and takes, for its OpenAPI document; the answers themselves are shapes of `usecases/shapes`."""
