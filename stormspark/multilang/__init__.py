"""Components in any language, over Storm's multilang protocol (I1-I18)."""
